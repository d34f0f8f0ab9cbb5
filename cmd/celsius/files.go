package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// folderFlag is a flag for a folder with a cluster's own files, for example its state machines.
type folderFlag struct{ name, dir string }

func (f *folderFlag) register(flags *pflag.FlagSet, name, doc string) {
	f.name = "--" + name
	flags.StringVar(&f.dir, name, "", doc)
}

// loadFolder reads the folder of a flag. Its error lists all mistakes in the folder; warnings go to standard error. Without a folder it
// returns the zero value.
func loadFolder[T any](f folderFlag, load func(fs.FS) (T, source.Issues)) (loaded T, err error) {
	if f.dir == "" {
		return loaded, nil
	}
	switch info, err := os.Stat(f.dir); {
	case errors.Is(err, fs.ErrNotExist):
		return loaded, usageError("%s: there is no folder %s", f.name, f.dir)
	case err != nil:
		return loaded, usageError("%s: %w", f.name, err)
	case !info.IsDir():
		return loaded, usageError("%s: %s is not a folder", f.name, f.dir)
	}
	loaded, issues := inFolder(f.dir, load)
	if issues.Err() != nil {
		return loaded, fmt.Errorf("%s: %w", f.name, issues)
	}
	if warnings := issues.Warnings(); len(warnings) > 0 {
		say(os.Stderr, "%s\n", warnings.Shown(func(i source.Issue) string { return f.name + ": " + i.Render() }))
	}
	return loaded, nil
}

// inFolder reads a folder. File names in the issues contain the whole path.
func inFolder[T any](dir string, load func(fs.FS) (T, source.Issues)) (T, source.Issues) {
	loaded, issues := load(os.DirFS(dir))
	for i := range issues {
		issues[i].File = filepath.Join(dir, issues[i].File)
	}
	return loaded, issues
}

// readAs reads a file, a folder or, for "-", standard input.
func readAs[T any](
	arg string, in io.Reader, folder func(fs.FS) (T, source.Issues), file func(name string, data []byte) (T, source.Issues),
) (loaded T, issues source.Issues) {
	data, err := []byte(nil), error(nil)
	if arg == "-" {
		data, err = io.ReadAll(in)
	} else if info, wrong := os.Stat(arg); wrong == nil && info.IsDir() {
		return inFolder(arg, folder)
	} else {
		data, err = os.ReadFile(arg)
	}
	if err != nil {
		return loaded, source.Issues{{File: arg, Message: err.Error()}}
	}
	return file(arg, data)
}
