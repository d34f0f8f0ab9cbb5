package recording

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// suffix is the suffix of the files of a recording.
const suffix = ".cycles.gz"

// writer writes the newest file of a recording, whose size it knows, and removes the oldest files.
type writer struct {
	folder       string
	most, ofFile int64 // in bytes

	file   *os.File
	packed *gzip.Writer
	size   int64 // compressed size of file
	sum    string
}

// Write implements io.Writer. It compresses text into the file.
func (w *writer) Write(text []byte) (int, error) {
	if w.packed == nil {
		return len(text), nil // its file could not be created
	}
	return w.packed.Write(text) //nolint:wrapcheck // the caller says what it was
}

// counted counts the bytes that are written to a file.
type counted struct{ w *writer }

func (c counted) Write(data []byte) (int, error) {
	n, err := c.w.file.Write(data)
	c.w.size += int64(n)
	return n, err //nolint:wrapcheck // it names the file
}

// write writes queued data. full reports that the next file must begin.
func (w *writer) write(batch []noted) (full bool, err error) {
	for i := range batch {
		if batch[i].checkpoint != nil {
			if err := w.next(); err != nil {
				return false, err
			}
		}
		if err := w.encode(&batch[i]); err != nil {
			return false, fmt.Errorf("write a recording: %w", err)
		}
	}
	if w.packed == nil {
		return false, nil
	}
	if err := w.packed.Flush(); err != nil {
		return false, fmt.Errorf("write a recording: %w", err)
	}
	return w.size > w.ofFile, nil
}

// next begins a file, and removes the oldest files if the recording is too large.
func (w *writer) next() error {
	if err := errors.Join(w.close(), os.MkdirAll(w.folder, 0o700)); err != nil {
		return fmt.Errorf("make the folder of a recording: %w", err)
	}
	name, file, err := "", (*os.File)(nil), os.ErrExist
	for at := time.Now().UTC(); errors.Is(err, os.ErrExist); at = at.Add(1) { // two files may begin at the same time by the clock
		name = filepath.Join(w.folder, at.Format("20060102T150405.000000000Z")+suffix)
		file, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // the file describes a whole cluster
	}
	if err != nil {
		return fmt.Errorf("begin a file of a recording: %w", err)
	}
	w.file, w.size = file, 0
	w.packed, _ = gzip.NewWriterLevel(counted{w}, gzip.BestSpeed)
	return w.trim(name)
}

// trim removes the oldest files if the recording is too large. It keeps the newest file, and reserves space for it.
func (w *writer) trim(newest string) error {
	files, err := filesIn(w.folder)
	if err != nil {
		return err
	}
	room := w.most - w.ofFile
	for _, file := range slices.Backward(files) {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("look at a recording: %w", err)
		}
		if room -= info.Size(); room < 0 && file != newest {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove the oldest of a recording: %w", err)
			}
		}
	}
	return nil
}

// close ends the file.
func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	err := errors.Join(w.packed.Close(), w.file.Close())
	w.file, w.packed = nil, nil
	return err
}

// filesIn returns the files of a recording in a folder, the oldest first.
func filesIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for recordings: %w", err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			out = append(out, filepath.Join(folder, e.Name()))
		}
	}
	return out, nil // ReadDir sorts, and names are times
}
