package manifest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is the text of one file.
type Source struct {
	// Name is the file name in issues.
	Name string
	Data []byte
}

// Read reads files, folders and standard input ("-"), in the given order. A folder means all *.yaml, *.yml and *.json files in it and below
// it, sorted by path.
func Read(stdin io.Reader, paths ...string) ([]Source, error) {
	var out []Source
	for _, p := range paths {
		if p == "-" {
			data, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			out = append(out, Source{Name: "<stdin>", Data: data})
			continue
		}
		names, err := filesOf(p)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("read input: %w", err)
			}
			out = append(out, Source{Name: name, Data: data})
		}
	}
	return out, nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch strings.ToLower(filepath.Ext(name)) {
		case ".yaml", ".yml", ".json":
			if !d.IsDir() {
				out = append(out, name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", path, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read folder %s: no *.yaml, *.yml or *.json file in it", path)
	}
	slices.Sort(out)
	return out, nil
}
