package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite what the server says in testdata/conversation.txt")

// client talks to a server over pipes.
type client struct {
	t     *testing.T
	to    io.WriteCloser
	from  *bufio.Reader
	ended chan error
	cache string
}

func dial(t *testing.T, delay time.Duration) *client {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	c := &client{t: t, to: to, from: bufio.NewReader(from), ended: make(chan error, 1)}
	options := Options{Version: "test", Delay: delay, Cache: t.TempDir(), Log: t.Output()}
	c.cache = options.Cache
	go func() {
		c.ended <- Serve(in, out, options)
		_ = out.Close()
	}()
	return c
}

func (c *client) send(content []byte) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.to, "Content-Length: %d\r\n\r\n%s", len(content), content); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the next message of the server.
func (c *client) hear() map[string]any {
	c.t.Helper()
	content, err := readFrame(c.from)
	if err != nil {
		c.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(content, &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// TestConversation sends what a client says in testdata/conversation.txt, and compares the answers. The turn of the client is a line ">"
// with a JSON message below it. The turn of the server is a line "<".
func TestConversation(t *testing.T) {
	const file = "testdata/conversation.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, time.Millisecond)
	var got strings.Builder
	for turn := range strings.SplitSeq(string(want), "\n\n") {
		said, ok := strings.CutPrefix(turn, ">\n")
		if !ok {
			if !strings.HasPrefix(turn, "<\n") {
				fmt.Fprintf(&got, "%s\n\n", strings.TrimRight(turn, "\n")) // a comment
			}
			continue
		}
		said = strings.TrimRight(said, "\n")
		fmt.Fprintf(&got, ">\n%s\n\n", said)
		c.send([]byte(said))
		var m struct {
			ID     any
			Method string
		}
		_ = json.Unmarshal([]byte(said), &m) // some are not JSON, on purpose
		if m.ID != nil || m.Method == "" || strings.HasPrefix(m.Method, "textDocument/did") {
			heard, err := json.MarshalIndent(c.hear(), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "<\n%s\n\n", strings.ReplaceAll(string(heard), c.cache, "CACHE"))
		}
	}
	if err := <-c.ended; err != nil {
		t.Errorf("the conversation ends with: %v", err)
	}
	text := strings.TrimRight(got.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCancelled cancels a request that waits behind another one.
func TestCancelled(t *testing.T) {
	b := &inbox{waiting: map[string]bool{}}
	b.note(request{ID: json.RawMessage("7"), Method: "textDocument/hover"})
	b.note(request{Method: "$/cancelRequest", Params: json.RawMessage(`{"id": 7}`)})
	b.note(request{Method: "$/cancelRequest", Params: json.RawMessage(`{"id": 8}`)}) // this one was answered before
	if !b.turn(json.RawMessage("7")) {
		t.Error("the request was not taken back")
	}
	b.note(request{ID: json.RawMessage("8"), Method: "textDocument/hover"})
	if b.turn(json.RawMessage("8")) {
		t.Error("another request was taken back")
	}
	if len(b.waiting) > 0 {
		t.Errorf("kept: %v", b.waiting)
	}
}

// TestEnds checks how a conversation ends if the client stops it.
func TestEnds(t *testing.T) {
	exit := frame(`{"jsonrpc": "2.0", "method": "exit"}`)
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"the client is gone":     {"", nil},
		"gone within a message":  {"Content-Length: 10\r\n\r\n{", io.ErrUnexpectedEOF},
		"no length":              {"Content-Type: x\r\n\r\n{}", errFrame},
		"a length below zero":    {"Content-Length: -1\r\n\r\n{}", errFrame},
		"a length without end":   {"Content-Length: 99999999999\r\n\r\n{}", errFrame},
		"no header":              {"{}", errFrame},
		"exit without shutdown":  {exit, errors.New("the client left without shutting down")},
		"exit after a shutdown":  {frame(initialize) + frame(`{"id": 2, "method": "shutdown"}`) + exit, nil},
		"a length in small case": {strings.ToLower(exit[:14]) + exit[14:], errors.New("the client left without shutting down")},
	} {
		err := Serve(strings.NewReader(c.in), io.Discard, Options{Log: io.Discard})
		if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) && fmt.Sprint(err) != c.want.Error() {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

const initialize = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}`

func frame(content string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(content), content)
}

// FuzzServer sends any data to a server: as bytes, and as the content of messages after a correct start.
func FuzzServer(f *testing.F) {
	f.Add("Content-Length: 2\r\n\r\n{}", `{"id": 1, "method": "textDocument/completion"}`, "kind: SchedulingPolicy", 0, 3)
	f.Add("", `[1]`,
		"apiVersion: scheduling.celsius.dev/v1alpha1\nkind: SchedulingPolicy\nspec: {tiers: [{name: a, tables: [{name: gang}]}]}", 2, 40)
	f.Add("", `{"id": {}, "method": 1}`, "kind: RuleTable\nscores:\n- {name: x, expression: node.}", 2, 28)
	core, err := NewCore()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw, content, text string, line, character int) {
		quoted, _ := json.Marshal(text)
		in := frame(initialize) + frame(content) +
			frame(fmt.Sprintf(`{"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "file:///a.yaml", "text": %s}}}`, quoted))
		for i, method := range []string{"completion", "hover", "definition", "documentSymbol"} {
			in += frame(fmt.Sprintf(`{"id": %d, "method": "textDocument/%s", "params": {"textDocument": {"uri": "file:///a.yaml"},
				"position": {"line": %d, "character": %d}}}`, i+10, method, line, character))
		}
		var out, log bytes.Buffer
		s := newServer(core, &out, Options{Log: &log, Delay: time.Hour, Cache: t.TempDir()})
		_ = s.serve(strings.NewReader(in + raw))
		if strings.Contains(log.String(), "internal error") {
			t.Fatal(log.String())
		}
		_ = core.Check("a.yaml", text)
	})
}
