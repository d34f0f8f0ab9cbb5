package try

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Folder opens the page's folder. "" is the folder web next to this program, where make web creates it. It returns an error if the page
// does not exist.
func Folder(dir string) (fs.FS, error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the folder next to this program: %w", err)
		}
		dir = filepath.Join(filepath.Dir(self), "web")
	}
	folder := os.DirFS(dir)
	if _, err := fs.Stat(folder, "index.html"); err != nil {
		return nil, fmt.Errorf("%s does not hold the page: make web writes it to bin/web", dir)
	}
	return folder, nil
}

// Handler serves the page from its folder. Paths must be relative to the folder: a caller that mounts the handler elsewhere strips the
// prefix. The program is sent in a compressed form that the browser accepts. The page may load only files of the folder.
func Handler(folder fs.FS) http.Handler {
	files := http.FileServerFS(folder)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; "+
			"worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // the browser asks whether a file has changed, and receives it again only then
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
		case path.Base(r.URL.Path) == program:
			serveProgram(w, r, folder)
		default:
			files.ServeHTTP(w, r)
		}
	})
}

// serveProgram sends the program in the best form that the browser accepts.
func serveProgram(w http.ResponseWriter, r *http.Request, folder fs.FS) {
	w.Header().Set("Vary", "Accept-Encoding")
	w.Header().Set("Content-Type", "application/wasm")
	for _, form := range []struct{ name, ending string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if takes(r, form.name) {
			w.Header().Set("Content-Encoding", form.name)
			http.ServeFileFS(w, r, folder, program+form.ending)
			return
		}
	}
	http.Error(w, "the program is only sent compressed, by br or gzip", http.StatusNotAcceptable)
}

// takes reports whether the client accepts an encoding. An encoding with q=0 is not accepted.
func takes(r *http.Request, encoding string) bool {
	named := strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",")
	return slices.ContainsFunc(named, func(n string) bool {
		name, quality, _ := strings.Cut(n, ";")
		return strings.TrimSpace(name) == encoding && strings.TrimSpace(quality) != "q=0"
	})
}
