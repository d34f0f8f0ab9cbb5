package jobplugin

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"golang.org/x/crypto/ssh"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// functions returns the functions that only the language of job plugins has.
func functions(job *typed.Schema) []*rules.Function {
	one := func(name, doc string, names []string, overloads ...rules.Overload) *rules.Function {
		for i := range overloads {
			overloads[i].ID = fmt.Sprintf("jobplugin_%s_%d", name, i)
		}
		return &rules.Function{Name: name, Doc: doc, Names: names, Overloads: overloads}
	}
	str := cel.StringType
	return []*rules.Function{
		one("podName", "The name of the pod of that number, from 0, of a task of a job.", []string{"job", "task", "index"}, rules.Overload{
			Args: []*cel.Type{job.Type(), str, cel.IntType}, Result: str, Cost: 16,
			Eval: func(args ...ref.Val) ref.Val {
				task, isText := args[1].(types.String)
				index, isInt := args[2].(types.Int)
				if !isText || !isInt {
					return types.MaybeNoSuchOverloadErr(args[1])
				}
				return types.String(podName(fieldsOf(args[0]), string(task), int64(index)))
			},
		}),
		one("hosts", "The hosts that the pods of a job are, or those of the task of that name, in their order: pod.job, or what the template "+
			"says as "+
			"hostname and subdomain; where a template has a hostname, all pods of the task are the one.", []string{"job", "task"},
			rules.Overload{
				Args: []*cel.Type{job.Type()}, Result: cel.ListType(str), Cost: 1000,
				Eval: func(args ...ref.Val) ref.Val {
					return typed.Strings(hosts(fieldsOf(args[0]), func(string) bool { return true }))
				},
			},
			rules.Overload{
				Args: []*cel.Type{job.Type(), str}, Result: cel.ListType(str), Cost: 1000,
				Eval: func(args ...ref.Val) ref.Val {
					return typed.Strings(hosts(fieldsOf(args[0]), func(task string) bool { return args[1].Equal(types.String(task)) == types.True }))
				},
			}),
		one("dnsLabel", "A text as the name of a volume or a host may be: dots become dashes, and of one that is longer than 63 characters the "+
			"first 50 stay, with twelve that are drawn from all of it.", nil, rules.Overload{
			Args: []*cel.Type{str}, Result: str, Cost: 16,
			Eval: func(args ...ref.Val) ref.Val {
				text, _ := args[0].(types.String)
				return types.String(dnsLabel(string(text)))
			},
		}),
		one("mapOf", "The map of these keys, each with the value in its place. Keys that stand twice, and lists of two lengths, are errors.",
			[]string{"keys", "values"}, rules.Overload{
				Args: []*cel.Type{cel.ListType(str), cel.ListType(str)}, Result: cel.MapType(str, str), Cost: 1000,
				Eval: func(args ...ref.Val) ref.Val { return mapOf(textsOf(args[0]), textsOf(args[1])) },
			}),
		one("json", "A value as JSON, the keys of maps sorted.", nil, rules.Overload{
			Args: []*cel.Type{cel.DynType}, Result: str, Cost: 1000,
			Eval: func(args ...ref.Val) ref.Val {
				v, err := typed.Plain(args[0])
				if err != nil {
					return types.WrapErr(err)
				}
				data, err := json.Marshal(v)
				if err != nil {
					return types.WrapErr(err)
				}
				return types.String(data)
			},
		}),
		one("base64", "A text in base64, as the data of a Secret is written.", nil, rules.Overload{
			Args: []*cel.Type{str}, Result: str, Cost: 64,
			Eval: func(args ...ref.Val) ref.Val {
				text, _ := args[0].(types.String)
				return types.String(base64.StdEncoding.EncodeToString([]byte(text)))
			},
		}),
		one("rsaKeyPair", "A pair of RSA keys, made anew with each call: `private` in PEM (PKCS #1), `public` as a line of authorized_keys. For "+
			"objects that are made once.", []string{"bits"}, rules.Overload{
			Args: []*cel.Type{cel.IntType}, Result: cel.MapType(str, str), Cost: 100_000,
			Eval: func(args ...ref.Val) ref.Val { return rsaKeyPair(args[0]) },
		}),
	}
}

// fieldsOf converts a value to an object in JSON.
func fieldsOf(v ref.Val) map[string]any {
	plain, err := typed.Plain(v)
	if err != nil {
		return nil
	}
	fields, _ := plain.(map[string]any)
	return fields
}

func textsOf(v ref.Val) (out []string) {
	list, ok := v.(traits.Lister)
	if !ok {
		return nil
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		text, _ := it.Next().(types.String)
		out = append(out, string(text))
	}
	return out
}

func mapOf(keys, values []string) ref.Val {
	if len(keys) != len(values) {
		return types.NewErr("%d keys and %d values", len(keys), len(values))
	}
	out := make(map[string]string, len(keys))
	for i, key := range keys {
		if _, twice := out[key]; twice {
			return types.NewErr("the key %s stands twice", cut(key))
		}
		out[key] = values[i]
	}
	return types.NewStringStringMap(types.DefaultTypeAdapter, out)
}

// textAt returns the string at a path in a JSON object, or "".
func textAt(object map[string]any, path ...string) string {
	var at any = object
	for _, key := range path {
		fields, _ := at.(map[string]any)
		at = fields[key]
	}
	text, _ := at.(string)
	return text
}

func podName(job map[string]any, task string, index int64) string {
	return fmt.Sprintf("%s-%s-%d", textAt(job, "metadata", "name"), task, index)
}

// mostHosts limits the number of hosts of one job. More hosts do not fit into one object.
const mostHosts = 100_000

func hosts(job map[string]any, of func(task string) bool) (out []string) {
	spec, _ := job["spec"].(map[string]any)
	tasks, _ := spec["tasks"].([]any)
	for _, item := range tasks {
		task, _ := item.(map[string]any)
		replicas, _ := task["replicas"].(int64)
		name, host := textAt(task, "name"), textAt(task, "template", "spec", "hostname")
		domain := cmp.Or(textAt(task, "template", "spec", "subdomain"), textAt(job, "metadata", "name"))
		for i := range replicas {
			if !of(name) || len(out) == mostHosts {
				break
			}
			if host != "" {
				out = append(out, host+"."+domain)
				break
			}
			out = append(out, podName(job, name, i)+"."+domain)
		}
	}
	return out
}

func dnsLabel(text string) string {
	const longest, kept, drawn = 63, 50, 12
	text = strings.ReplaceAll(text, ".", "-")
	if len(text) <= longest {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return text[:kept] + "-" + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:drawn])
}

func rsaKeyPair(bits ref.Val) ref.Val {
	n, ok := bits.(types.Int)
	if !ok || n < 2048 || n > 8192 {
		return types.NewErr("an RSA key has from 2048 to 8192 bits")
	}
	key, err := rsa.GenerateKey(rand.Reader, int(n))
	if err != nil {
		return types.WrapErr(err)
	}
	public, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return types.WrapErr(err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return types.NewStringStringMap(types.DefaultTypeAdapter, map[string]string{
		"private": string(private), "public": string(ssh.MarshalAuthorizedKey(public)),
	})
}
