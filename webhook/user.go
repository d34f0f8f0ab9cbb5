package webhook

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	backoff "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// User is the user who sent a request.
type User struct {
	Name   string
	Groups []string
	// May asks the API server whether the user may do an action. nil means that this is not known.
	May func(verb, group, resource, namespace, name string) (bool, error)
}

// userSchema returns the type of a user in rows.
func userSchema() *typed.Schema {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return typed.New(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"name": {Type: "string", Description: "The name, as system:serviceaccount:NAMESPACE:NAME of a service account."},
		"groups": {
			Type: "array", Description: "The groups of the user.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text},
		},
	}}, "User")
}

// whoKey is the key of the User among the fields of the value. No field has this name.
const whoKey = ""

func (u User) value(s *typed.Schema) ref.Val {
	groups := make([]any, len(u.Groups))
	for i, group := range u.Groups {
		groups[i] = group
	}
	return typed.Object(s, map[string]any{"name": u.Name, "groups": groups, whoKey: &u})
}

// userFunctions returns the functions that are called on a user.
func userFunctions(s *typed.Schema) []*rules.Function {
	overload := func(id string, args int) rules.Overload {
		all := []*cel.Type{s.Type()}
		for range args {
			all = append(all, cel.StringType)
		}
		return rules.Overload{ID: "admission_may_" + id, Member: true, Args: all, Result: cel.BoolType, Cost: 1000, Eval: may}
	}
	return []*rules.Function{{
		Name: "may", Names: []string{"verb", "resource", "name"}, Overloads: []rules.Overload{overload("cluster", 3), overload("namespace", 4)},
		Doc: "Whether the API server lets the user do that, as of `kubectl auth can-i`: `user.may('use', " +
			"'queues.scheduling.volcano.sh', 'q')`. " +
			"Before the name stands the namespace, of what is in one: `user.may('get', 'secrets', 'team', 'key')`.",
	}}
}

func may(args ...ref.Val) ref.Val {
	fields, err := args[0].ConvertToNative(reflect.TypeFor[map[string]any]())
	if err != nil {
		return types.WrapErr(err)
	}
	who, ok := fields.(map[string]any)[whoKey].(*User)
	if !ok || who.May == nil {
		return types.NewErr("what the user may do is not known")
	}
	texts := make([]string, 0, len(args))
	for _, arg := range args[1:] {
		texts = append(texts, textOf(arg))
	}
	namespace, name := "", texts[len(texts)-1]
	if len(texts) == 4 { //nolint:mnd // verb, resource, namespace, name
		namespace = texts[2]
	}
	resource, group, _ := strings.Cut(texts[1], ".")
	yes, err := who.May(texts[0], group, resource, namespace, name)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(yes)
}

// authorizing returns an authorizer that asks the API server, and caches the answers for a moment.
func authorizing(cfg *rest.Config) (authorizer.Authorizer, error) {
	const moment = 10 * time.Second
	c, err := authorizationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("ask the API server who may do what: %w", err)
	}
	retry := backoff.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
	return authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: c, AllowCacheTTL: moment, DenyCacheTTL: moment, WebhookRetryBackoff: &retry,
	}.New()
}

// userOf returns the user of a request, with the function that checks the user's permissions.
func (c cluster) userOf(ctx context.Context, info authenticationv1.UserInfo) User {
	u := User{Name: info.Username, Groups: info.Groups}
	if c.authorizer == nil {
		return u
	}
	extra := map[string][]string{}
	for key, values := range info.Extra {
		extra[key] = values
	}
	who := &user.DefaultInfo{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: extra}
	u.May = func(verb, group, resource, namespace, name string) (bool, error) {
		decision, _, err := c.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: verb, APIGroup: group, APIVersion: "*", Resource: resource, Namespace: namespace, Name: name, ResourceRequest: true,
		})
		if err != nil {
			return false, fmt.Errorf("ask the API server whether %s may %s %s: %w", info.Username, verb, resource, err)
		}
		return decision == authorizer.DecisionAllow, nil
	}
	return u
}
