package lsp

// Of the protocol's types, what is used; see https://microsoft.github.io/language-server-protocol.

// Position is a place between two characters: its line, and in that the count of UTF-16 code units, both from 0.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is a part of a text, without its end.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Change is a change of a text: of a part, or without a range of all of it.
type Change struct {
	Range *Range `json:"range"`
	Text  string `json:"text"`
}

// Diagnostic is an issue at its place.
type Diagnostic struct {
	Range    Range  `json:"range"`
	Severity int    `json:"severity"`
	Source   string `json:"source"`
	Message  string `json:"message"`
}

// The severities of diagnostics.
const (
	severityError   = 1
	severityWarning = 2
)

// documentParams names an open text.
type documentParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
	ContentChanges []Change `json:"contentChanges"`
}

// diagnosticsParams are what is published of a text.
type diagnosticsParams struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// initializeResult says what the server can do.
type initializeResult struct {
	Capabilities capabilities      `json:"capabilities"`
	ServerInfo   map[string]string `json:"serverInfo"`
}

// capabilities are those of the server.
type capabilities struct {
	PositionEncoding string         `json:"positionEncoding"`
	TextDocumentSync map[string]any `json:"textDocumentSync"`
}

// syncIncremental has clients send changes, not texts. A change without a range is a whole text all the same.
const syncIncremental = 2
