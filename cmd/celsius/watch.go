package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/engine/sim"
)

// settled is how long files must stay unchanged before they are read again, because an editor causes several events when it saves a file.
const settled = 100 * time.Millisecond

// watch simulates once, and again whenever a file changes, until it is interrupted. After the first run it prints only changes. It prints
// mistakes. The next report is compared with the last report without mistakes.
func (s *simulation) watch(c *cobra.Command, args []string, now time.Time) error {
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	w, err := newWatcher(args, s)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }() // it ends with the program
	last := s.again(c, args, now, nil)
	say(c.ErrOrStderr(), "watching %s; Ctrl-C ends it\n", strings.Join(args, ", "))
	var rest <-chan time.Time // nil if nothing has changed
	changed := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			if w.meant(e) {
				changed[e.Name] = true
				rest = time.After(settled)
			}
		case err := <-w.Errors:
			return fmt.Errorf("watch files: %w", err)
		case <-rest:
			var names []string
			for name := range changed {
				names = append(names, filepath.Base(name))
			}
			slices.Sort(names)
			say(c.OutOrStdout(), "\n%s %s changed\n", time.Now().Format(time.TimeOnly), strings.Join(names, ", "))
			if err := w.follow(); err != nil {
				say(c.ErrOrStderr(), "celsius: %v\n", err)
			}
			last = s.again(c, args, now, last)
			rest, changed = nil, map[string]bool{}
		}
	}
}

// again runs the simulation once. It returns the report, or the last one if there are mistakes.
func (s *simulation) again(c *cobra.Command, args []string, now time.Time, last *sim.Report) *sim.Report {
	report, chosen, err := s.once(c, args, now)
	if err != nil {
		exitCode(err, c.ErrOrStderr())
		return last
	}
	if last == nil || s.to != "" {
		if err := s.print(c.OutOrStdout(), report, chosen); err != nil {
			exitCode(err, c.ErrOrStderr())
		}
	}
	if last != nil {
		text := report.Changes(last)
		if text == "" {
			text = "nothing is decided otherwise\n"
		}
		say(c.OutOrStdout(), "%s", text)
	}
	return report
}

// watcher reports changes of files.
type watcher struct {
	*fsnotify.Watcher
	files   []string // absolute paths, as are the others
	folders []string
	not     string // a file that the program itself writes
}

// newWatcher watches files and folders. For a file it watches the folder, because an editor may replace the file.
func newWatcher(args []string, s *simulation) (*watcher, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := &watcher{Watcher: n}
	if s.to != "" {
		w.not, _ = filepath.Abs(s.to)
	}
	for _, arg := range args {
		path, err := filepath.Abs(arg)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", arg, err)
		}
		if isFolder(path) {
			w.folders = append(w.folders, path)
			continue
		}
		w.files = append(w.files, path)
	}
	if path, err := filepath.Abs(s.policy); s.policy != "" && err == nil && !isFolder(path) && isThere(path) {
		w.files = append(w.files, path)
	}
	return w, w.follow()
}

// follow watches all existing folders. Folders that are already watched stay watched.
func (w *watcher) follow() error {
	var all error
	for _, f := range w.files {
		all = errors.Join(all, w.Add(filepath.Dir(f)))
	}
	for _, f := range w.folders {
		all = errors.Join(all, filepath.WalkDir(f, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			return w.Add(path)
		}))
	}
	if all != nil {
		return fmt.Errorf("watch files: %w", all)
	}
	return nil
}

// meant reports whether an event concerns a file that the simulation reads.
func (w *watcher) meant(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod || e.Name == w.not {
		return false
	}
	if slices.Contains(w.files, e.Name) {
		return true
	}
	return slices.ContainsFunc(w.folders, func(f string) bool {
		switch strings.ToLower(filepath.Ext(e.Name)) {
		case ".yaml", ".yml", ".json", "": // a name without an extension may be a folder
			return strings.HasPrefix(e.Name, f+string(filepath.Separator))
		}
		return false
	})
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
