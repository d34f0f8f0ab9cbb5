package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// dataDir is the open and locked folder with everything that outlives the playground.
type dataDir struct {
	dir        string
	temporary  bool // it is removed at the end
	fresh      bool // it contained no cluster
	kubeconfig string
	lock       *lock
	log        *os.File
}

// openData opens the folder, or a temporary one if no folder is named.
func openData(dir string, out io.Writer) (*dataDir, error) {
	d := &dataDir{dir: dir, temporary: dir == ""}
	var err error
	if d.temporary {
		d.dir, err = os.MkdirTemp("", "celsius-playground-")
	} else {
		err = os.MkdirAll(d.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder %s cannot be made: %w; give another --data-dir", dir, plainError(err))
	}
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if d.lock, err = lockDir(d.dir); err != nil {
		return nil, err
	}
	if d.lock.stale != 0 {
		say(out, "the playground with process id %d ended without giving %s back; it is taken over", d.lock.stale, d.dir)
	}
	_, err = os.Stat(filepath.Join(d.dir, "etcd"))
	d.fresh = errors.Is(err, fs.ErrNotExist)
	d.kubeconfig = filepath.Join(d.dir, "kubeconfig")
	if d.log, err = openLog(d.dir); err != nil {
		return nil, errors.Join(err, d.lock.release())
	}
	d.announce()
	return d, nil
}

// close unlocks the folder. It removes a temporary folder, unless an error occurred and the log may be needed.
func (d *dataDir) close(clean bool) error {
	if pointer, err := pointerFile(); err == nil {
		if to, err := os.Readlink(pointer); err == nil && to == d.dir {
			_ = os.Remove(pointer)
		}
	}
	err := d.lock.release()
	if d.temporary && clean {
		logTo(io.Discard)
		return errors.Join(err, d.log.Close(), os.RemoveAll(d.dir))
	}
	return err
}

// pointToLog adds the path of the log to an error.
func (d *dataDir) pointToLog(err error) error {
	return fmt.Errorf("%w\nthe log is %s", err, d.log.Name())
}

// announce lets `playground kubectl` find the folder. If it cannot write the link, it does nothing, and kubectl then requires a kubeconfig.
func (d *dataDir) announce() {
	pointer, err := pointerFile()
	if err != nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(pointer), 0o700); err != nil {
		return
	}
	_ = os.Remove(pointer)
	_ = os.Symlink(d.dir, pointer)
}

// pointerFile returns the path of the link to the data folder of the playground that was started last. The link is in a folder of this
// user, because a kubeconfig decides which programs kubectl runs.
func pointerFile() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to find a running playground by: %w", err)
	}
	return filepath.Join(cache, "celsius-playground", "running"), nil
}

// runningKubeconfig returns the kubeconfig of the running playground.
func runningKubeconfig() (string, error) {
	pointer, err := pointerFile()
	if err != nil {
		return "", err
	}
	dir, err := os.Readlink(pointer)
	if err != nil || lockedBy(dir) == 0 {
		return "", errors.New("no playground is running: start one with go run ./cmd/playground, or give --kubeconfig")
	}
	return filepath.Join(dir, "kubeconfig"), nil
}
