package source

import (
	"io/fs"
	"path"
)

// ReadFolder calls read for the files *.yaml and *.yml of a folder, in the order of their names. It returns issues if the folder or a file
// cannot be read.
func ReadFolder(folder fs.FS, read func(name string, data []byte)) (issues Issues) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return Issues{{Message: "the folder cannot be read: " + err.Error()}}
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		data, err := fs.ReadFile(folder, e.Name())
		if err != nil {
			issues = append(issues, Issue{File: e.Name(), Message: err.Error()})
			continue
		}
		read(e.Name(), data)
	}
	return issues
}
