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

// maxMessage is the maximum size of a message in bytes.
const maxMessage = 64 << 20

// message is a JSON-RPC message in either direction.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is the answer to a request that cannot be served.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// The error codes of JSON-RPC and of the protocol.
const (
	parseError       = -32700
	invalidRequest   = -32600
	methodNotFound   = -32601
	invalidParams    = -32602
	internalError    = -32603
	notInitialized   = -32002
	requestCancelled = -32800
)

// errFrame reports that the end of a message is unknown, so that no later message can be read.
var errFrame = errors.New("a message is not framed as the protocol wants it")

// readFrame returns the content of the next message. The error is io.EOF, errFrame, or an error of the stream.
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

// request is a request of a client. Without an id it is a notification.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// parseRequest parses the content of a message. A response has no method. The server expects no responses.
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
