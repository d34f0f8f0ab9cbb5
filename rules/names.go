package rules

import "github.com/celsius-scheduler/celsius/rules/source"

// Names of package source under which package policy knows them still; new code imports source.
type (
	Severity = source.Severity
	Issue    = source.Issue
	Issues   = source.Issues
	Document = source.Document
	Value    = source.Value
	Field    = source.Field
	NodeKind = source.NodeKind
	Text     = source.Text
	Entry    = source.Entry
)

// The same of constants and functions.
const (
	Error   = source.Error
	Warning = source.Warning
	Null    = source.Null
	Scalar  = source.Scalar
	Map     = source.Map
	List    = source.List
)

// Parse is source.Parse.
func Parse(file string, data []byte) ([]*Document, Issues) { return source.Parse(file, data) }

// ParseStored is source.ParseStored.
func ParseStored(data []byte) (*Document, Issues) { return source.ParseStored(data) }

// NewText is source.NewText.
func NewText(value string) Text { return source.NewText(value) }

// Suggest is source.Suggest.
func Suggest(word string, among []string) string { return source.Suggest(word, among) }

// Write is source.Write.
func Write(entries []Entry) ([]byte, error) { return source.Write(entries) }
