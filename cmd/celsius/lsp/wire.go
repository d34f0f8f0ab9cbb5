package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
	"strings"
)

// maxMessage bounds what one message may hold, in bytes.
const maxMessage = 64 << 20

// message is one of JSON-RPC, as it comes or as it goes.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is what a request is answered with that cannot be served.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// The codes of errors, of JSON-RPC and of the protocol.
const (
	parseError       = -32700
	invalidRequest   = -32600
	methodNotFound   = -32601
	invalidParams    = -32602
	internalError    = -32603
	notInitialized   = -32002
	requestCancelled = -32800
)

// errFrame says that where a message ends is not known, so that no later one can be read.
var errFrame = errors.New("a message is not framed as the protocol wants it")

// readFrame gives the content of the next message. Errors: io.EOF, errFrame, or that of the stream.
func readFrame(in *bufio.Reader) ([]byte, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err //nolint:wrapcheck // io.EOF is the usual end
	}
	header, err := textproto.NewReader(in).ReadMIMEHeader()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFrame, err)
	}
	length, err := strconv.Atoi(strings.TrimSpace(header.Get("Content-Length")))
	if err != nil || length < 0 || length > maxMessage {
		return nil, fmt.Errorf("%w: Content-Length is %q", errFrame, header.Get("Content-Length"))
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(in, content); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return content, nil
}

// writeFrame writes one message.
func writeFrame(out io.Writer, m message) error {
	m.JSONRPC = "2.0"
	content, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	if _, err := fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(content), content); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return nil
}

// request is what a client wants, or, without an id, what it tells.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// parseRequest reads the content of a message. A response, of which we expect none, has no method.
func parseRequest(content []byte) (request, *rpcError) {
	var r request
	if !json.Valid(content) {
		return r, &rpcError{parseError, "the message is not JSON"}
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return request{}, &rpcError{invalidRequest, "the message is no request: " + err.Error()}
	}
	if string(r.ID) == "null" {
		r.ID = nil
	}
	return r, nil
}
