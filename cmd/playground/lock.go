package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lock prevents a second playground on the same data.
type lock struct {
	file  *os.File
	stale int // the process that held the lock and ended without releasing it; 0: none
}

// lockDir locks the folder. The operating system releases the lock when the process ends in any way. The number in the file is for people.
func lockDir(dir string) (*lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder %s cannot be written: %w; give another --data-dir", dir, plainError(err))
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock of %s: %w", dir, err), file.Close())
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data folder %s is in use by the playground with process id %d; end that one or give another --data-dir", dir,
				pid)
		}
		return nil, fmt.Errorf("lock %s: %w", filepath.Join(dir, "lock"), err)
	}
	l := &lock{file: file, stale: pid}
	return l, l.write(strconv.Itoa(os.Getpid()) + "\n")
}

// release releases the lock. An empty file states that it was released in the regular way.
func (l *lock) release() error {
	return errors.Join(l.write(""), l.file.Close())
}

func (l *lock) write(text string) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// lockedBy returns the process that holds the folder's lock, or 0.
func lockedBy(dir string) int {
	file, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// plainError returns the cause without the call and the path, because the message already contains them.
func plainError(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}
