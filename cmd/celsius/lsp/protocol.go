package lsp

// The types of the protocol that are used; see https://microsoft.github.io/language-server-protocol.

// Position is a position between two characters: the line, and the number of UTF-16 code units in it, both from 0.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is a part of a text. End is exclusive.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Location is a part of a file.
type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}

// Change replaces a part of a text, or the whole text if Range is nil.
type Change struct {
	Range *Range `json:"range"`
	Text  string `json:"text"`
}

// Diagnostic is an issue with its position.
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

// Markup is a text for people.
type Markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

func markdown(text string) *Markup {
	if text == "" {
		return nil
	}
	return &Markup{"markdown", text}
}

// Item is one completion.
type Item struct {
	Label         string    `json:"label"`
	Kind          int       `json:"kind"`
	Detail        string    `json:"detail,omitempty"`
	Documentation *Markup   `json:"documentation,omitempty"`
	SortText      string    `json:"sortText,omitempty"`
	FilterText    string    `json:"filterText,omitempty"`
	TextEdit      *TextEdit `json:"textEdit,omitempty"`
}

// TextEdit replaces a part of a text.
type TextEdit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

// The kinds of completions.
const (
	itemMethod   = 2
	itemFunction = 3
	itemField    = 5
	itemVariable = 6
	itemModule   = 9
	itemProperty = 10
	itemWord     = 20
)

// Hover is the description of the word under the cursor.
type Hover struct {
	Contents *Markup `json:"contents"`
	Range    Range   `json:"range"`
}

// Symbol is an entry of a text's outline.
type Symbol struct {
	Name           string   `json:"name"`
	Detail         string   `json:"detail,omitempty"`
	Kind           int      `json:"kind"`
	Range          Range    `json:"range"`
	SelectionRange Range    `json:"selectionRange"`
	Children       []Symbol `json:"children,omitempty"`
}

// The kinds of symbols.
const (
	symbolFile      = 1
	symbolModule    = 2
	symbolNamespace = 3
	symbolField     = 8
	symbolEvent     = 24
)

// documentParams identifies an open text.
type documentParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
	ContentChanges []Change `json:"contentChanges"`
	Position       Position `json:"position"`
}

// diagnosticsParams are the published diagnostics of a text.
type diagnosticsParams struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// initializeResult describes what the server can do.
type initializeResult struct {
	Capabilities capabilities      `json:"capabilities"`
	ServerInfo   map[string]string `json:"serverInfo"`
}

// capabilities are the capabilities of the server.
type capabilities struct {
	PositionEncoding       string         `json:"positionEncoding"`
	TextDocumentSync       map[string]any `json:"textDocumentSync"`
	CompletionProvider     map[string]any `json:"completionProvider"`
	HoverProvider          bool           `json:"hoverProvider"`
	DefinitionProvider     bool           `json:"definitionProvider"`
	DocumentSymbolProvider bool           `json:"documentSymbolProvider"`
}

// syncIncremental requests that clients send changes instead of whole texts. A change without a range is still a whole text.
const syncIncremental = 2
