package try

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/celsius-scheduler/celsius/engine/page"
)

//go:embed page
var pageFiles embed.FS

// The name of the program in a folder, without the extension of its compression.
const program = "celsius.wasm"

// Best is the compression quality for a published page. It takes minutes.
const Best = brotli.BestCompression

// Build creates the folder of the page: the compiled and compressed program, and all other files that the page loads. root is the
// repository. Build needs the go command. quality is the quality of the compression, from 0 to Best.
func Build(ctx context.Context, root, dir string, quality int) error {
	examples, err := Examples(os.DirFS(root))
	if err != nil {
		return err
	}
	list, err := json.Marshal(examples)
	if err != nil {
		return fmt.Errorf("write the examples: %w", err)
	}
	goroot, err := output(ctx, root, nil, "env", "GOROOT")
	if err != nil {
		return err
	}
	glue, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("what comes with Go for WebAssembly: %w", err)
	}
	files := map[string][]byte{"examples.json": list, "wasm_exec.js": glue, "style.css": []byte(page.Style())}
	own, err := fs.Sub(pageFiles, "page")
	if err != nil {
		return fmt.Errorf("files of the page: %w", err)
	}
	names, err := fs.Glob(own, "*")
	if err != nil {
		return fmt.Errorf("files of the page: %w", err)
	}
	for _, name := range names {
		if files[name], err = fs.ReadFile(own, name); err != nil {
			return fmt.Errorf("files of the page: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the page's folder: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
	}
	return buildProgram(ctx, root, dir, quality)
}

// buildProgram compiles the program and compresses it. It keeps an up-to-date compressed program, because compression takes minutes.
func buildProgram(ctx context.Context, root, dir string, quality int) error {
	temp, err := os.MkdirTemp("", "celsius-try")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it lies where temporary files do
	raw := filepath.Join(temp, program)
	// Without inlining the program is a sixth smaller. Users do not notice the lower speed: see docs/decisions/0067.
	_, err = output(ctx, root, []string{"GOOS=js", "GOARCH=wasm"},
		"build", "-trimpath", "-buildvcs=false", "-gcflags=all=-l", "-ldflags=-s -w", "-o", raw, "./cmd/celsius/try/wasm")
	if err != nil {
		return err
	}
	data, err := os.ReadFile(raw)
	if err != nil {
		return fmt.Errorf("read what was compiled: %w", err)
	}
	if same(dir, data) {
		return nil
	}
	for ending, to := range map[string]func(io.Writer) io.WriteCloser{
		".br": func(w io.Writer) io.WriteCloser {
			return brotli.NewWriterOptions(w, brotli.WriterOptions{Quality: quality, LGWin: 24})
		},
		".gz": func(w io.Writer) io.WriteCloser {
			z, _ := gzip.NewWriterLevel(w, gzip.BestCompression) // it fails only for invalid levels
			return z
		},
	} {
		var small bytes.Buffer
		w := to(&small)
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("compress the program: %w", err)
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("compress the program: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, program+ending), small.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write the program: %w", err)
		}
	}
	return nil
}

// same reports whether a folder contains this program in both compressed forms.
func same(dir string, data []byte) bool {
	if _, err := os.Stat(filepath.Join(dir, program+".gz")); err != nil {
		return false
	}
	small, err := os.Open(filepath.Join(dir, program+".br"))
	if err != nil {
		return false
	}
	defer small.Close() //nolint:errcheck // it was only read
	have, err := io.ReadAll(brotli.NewReader(small))
	return err == nil && bytes.Equal(have, data)
}

// output runs the go command in the repository.
func output(ctx context.Context, root string, environment []string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = root, append(os.Environ(), environment...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &errs)
	}
	return out, nil
}
