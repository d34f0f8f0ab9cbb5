package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime/debug"
	"sync"
	"time"
)

// Options configure a server.
type Options struct {
	// Version is the version of the program, for the client.
	Version string
	// Delay is how long the server waits after a change before it checks a text.
	Delay time.Duration
	// Cache is the folder for built-in tables that a user navigates to.
	Cache string
	// Log receives errors of the server itself.
	Log io.Writer
}

// DefaultDelay is long enough for the next letter of a word.
const DefaultDelay = 150 * time.Millisecond

// Serve answers a client until the client ends the session. An error means that the session ended in another way.
func Serve(in io.Reader, out io.Writer, o Options) error {
	core, err := NewCore()
	if err != nil {
		return err
	}
	return newServer(core, out, o).serve(in)
}

func newServer(core *Core, out io.Writer, o Options) *server {
	return &server{
		Options: o, core: core, out: out, texts: map[string]*open{}, checked: make(chan checked), done: make(chan struct{}),
		inbox: inbox{come: make(chan incoming), waiting: map[string]bool{}},
	}
}

func (s *server) serve(in io.Reader) error {
	defer close(s.done)
	go s.inbox.read(in, s.done)
	return s.run()
}

// server is one session. One goroutine does everything except reading and checking.
type server struct {
	Options
	core    *Core
	out     io.Writer
	texts   map[string]*open
	changes int
	checked chan checked
	done    chan struct{}
	inbox   inbox

	initialized, shutdown bool
}

// open is a text that the client has opened.
type open struct {
	text    *Text
	version int
	// change is the number of the latest change. A check with another number is outdated.
	change int
	timer  *time.Timer
	uri    string
}

// checked is the result of a check.
type checked struct {
	uri         string
	change      int
	diagnostics []Diagnostic
}

// incoming is a message, or an error.
type incoming struct {
	request request
	wrong   *rpcError
	err     error // the end of the session
}

// inbox reads messages ahead, so that the client can cancel a request before its turn.
type inbox struct {
	come    chan incoming
	mu      sync.Mutex
	waiting map[string]bool // ids of waiting requests; true: cancelled
}

func (b *inbox) read(in io.Reader, done <-chan struct{}) {
	buffered := bufio.NewReader(in)
	queue := make(chan incoming, 1024)
	go func() {
		defer close(queue)
		for {
			content, err := readFrame(buffered)
			if err != nil {
				queue <- incoming{err: err}
				return
			}
			m := incoming{}
			m.request, m.wrong = parseRequest(content)
			b.note(m.request)
			queue <- m
		}
	}()
	for m := range queue {
		select {
		case b.come <- m:
		case <-done:
			return
		}
	}
}

// note records which requests wait, and which of them were cancelled.
func (b *inbox) note(r request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.ID != nil {
		b.waiting[string(r.ID)] = false
		return
	}
	var of struct {
		ID json.RawMessage `json:"id"`
	}
	if r.Method == "$/cancelRequest" && json.Unmarshal(r.Params, &of) == nil {
		if _, waits := b.waiting[string(of.ID)]; waits {
			b.waiting[string(of.ID)] = true
		}
	}
}

// turn reports whether the next request was cancelled.
func (b *inbox) turn(id json.RawMessage) (cancelled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cancelled = b.waiting[string(id)]
	delete(b.waiting, string(id))
	return cancelled
}

// errExit ends the session in the regular way.
var errExit = errors.New("exit")

func (s *server) run() error {
	for {
		var err error
		select {
		case m := <-s.inbox.come:
			err = s.take(m)
		case c := <-s.checked:
			err = s.publish(c)
		}
		switch {
		case errors.Is(err, errExit):
			if !s.shutdown {
				return errors.New("the client left without shutting down")
			}
			return nil
		case errors.Is(err, io.EOF):
			return nil // the client has ended
		case err != nil:
			return err
		}
	}
}

// take handles one message.
func (s *server) take(m incoming) error {
	switch {
	case m.err != nil:
		return m.err
	case m.wrong != nil:
		return s.answer(json.RawMessage("null"), nil, m.wrong)
	case m.request.Method == "":
		return nil // a response, although the server sent no request
	case m.request.Method == "exit":
		return errExit
	case m.request.ID == nil:
		if _, err := s.guarded(func() (any, error) { return nil, s.told(m.request) }); !errors.As(err, new(*rpcError)) {
			return err
		}
		return nil
	case s.inbox.turn(m.request.ID):
		return s.answer(m.request.ID, nil, &rpcError{requestCancelled, "the request was taken back"})
	}
	result, err := s.guarded(func() (any, error) { return s.asked(m.request) })
	return s.answer(m.request.ID, result, err)
}

// guarded converts a panic, which is a fault of Celsius, into an error, so that the editor keeps its server.
func (s *server) guarded(serve func() (any, error)) (result any, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			_, _ = fmt.Fprintf(s.Log, "celsius lsp: internal error: %v\n%s", failure, debug.Stack())
			result, err = nil, &rpcError{internalError, fmt.Sprintf("internal error: %v", failure)}
		}
	}()
	return serve()
}

func (s *server) answer(id json.RawMessage, result any, err error) error {
	m := message{ID: id}
	if err != nil {
		if !errors.As(err, &m.Error) {
			m.Error = &rpcError{internalError, err.Error()}
		}
		return writeFrame(s.out, m)
	}
	content, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	m.Result = content
	return writeFrame(s.out, m)
}

// asked handles a request.
func (s *server) asked(r request) (any, error) {
	switch {
	case r.Method == "initialize":
		s.initialized = true
		return s.initialize(), nil
	case !s.initialized:
		return nil, &rpcError{notInitialized, "initialize comes first"}
	case s.shutdown:
		return nil, &rpcError{invalidRequest, "the server is shut down"}
	case r.Method == "shutdown":
		s.shutdown = true
		return nil, nil //nolint:nilnil // the answer is null
	}
	serve := map[string]func(*open, Position) (any, error){
		"textDocument/completion": s.complete, "textDocument/hover": s.hover, "textDocument/definition": s.definition,
		"textDocument/documentSymbol": s.symbols,
	}[r.Method]
	if serve != nil {
		var p documentParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, &rpcError{invalidParams, err.Error()}
		}
		if t := s.texts[p.TextDocument.URI]; t != nil {
			return serve(t, p.Position)
		}
		return nil, nil //nolint:nilnil // of a text that is not open nothing is known
	}
	return nil, &rpcError{methodNotFound, fmt.Sprintf("there is no method %q", r.Method)}
}

func (s *server) initialize() initializeResult {
	return initializeResult{
		Capabilities: capabilities{
			PositionEncoding:   "utf-16",
			TextDocumentSync:   map[string]any{"openClose": true, "change": syncIncremental},
			CompletionProvider: map[string]any{"triggerCharacters": []string{".", "'", "\""}},
			HoverProvider:      true, DefinitionProvider: true, DocumentSymbolProvider: true,
		},
		ServerInfo: map[string]string{"name": "celsius", "version": s.Version},
	}
}

// told processes a notification, which needs no answer. It ignores unknown methods.
func (s *server) told(r request) error {
	var p documentParams
	if len(r.Params) > 0 && json.Unmarshal(r.Params, &p) != nil {
		return nil //nolint:nilerr // nobody waits for an answer
	}
	d := p.TextDocument
	switch r.Method {
	case "textDocument/didOpen":
		s.close(d.URI)
		s.texts[d.URI] = &open{text: NewText(d.Text), version: d.Version, uri: d.URI}
		s.check(d.URI, 0)
	case "textDocument/didChange":
		t := s.texts[d.URI]
		if t == nil {
			return nil
		}
		for _, c := range p.ContentChanges {
			t.text = t.text.With(c)
		}
		t.version = d.Version
		s.check(d.URI, s.Delay)
	case "textDocument/didClose":
		if s.texts[d.URI] != nil {
			s.close(d.URI)
			return s.tell(d.URI, d.Version, []Diagnostic{})
		}
	}
	return nil
}

func (s *server) close(uri string) {
	if t := s.texts[uri]; t != nil && t.timer != nil {
		t.timer.Stop()
	}
	delete(s.texts, uri)
}

// check checks a text after a delay, unless the text changes before that.
func (s *server) check(uri string, after time.Duration) {
	t := s.texts[uri]
	if t.timer != nil {
		t.timer.Stop()
	}
	s.changes++
	t.change = s.changes
	text, change := t.text, t.change
	t.timer = time.AfterFunc(after, func() {
		found, err := s.guarded(func() (any, error) { return diagnostics(text, s.core.Check(path.Base(uri), text.String())), nil })
		list, ok := found.([]Diagnostic)
		if err != nil || !ok {
			return // the log contains it
		}
		select {
		case s.checked <- checked{uri, change, list}:
		case <-s.done:
		}
	})
}

// publish sends the result of a check, unless the text has changed since.
func (s *server) publish(c checked) error {
	t := s.texts[c.uri]
	if t == nil || t.change != c.change || s.shutdown {
		return nil
	}
	return s.tell(c.uri, t.version, c.diagnostics)
}

func (s *server) tell(uri string, version int, list []Diagnostic) error {
	return writeFrame(s.out, message{Method: "textDocument/publishDiagnostics", Params: diagnosticsParams{uri, version, list}})
}
