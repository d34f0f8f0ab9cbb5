package main

import (
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
)

// openLog opens the file to which everything in this process logs.
func openLog(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "playground.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return file, nil
}

// logTo sends the log of every part to w, whatever library it uses. It changes global variables of the libraries. Therefore it is called
// once, before anything starts.
func logTo(w io.Writer) {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w)))
	klog.SetLogger(logger)
	ctrl.SetLogger(logger)
	stdlog.SetOutput(w)
	slog.SetDefault(slog.New(slog.NewTextHandler(w, nil)))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

// stderrTo redirects standard error to the log, because some libraries always write to standard error: for example, the client of etcd. If
// the process crashes, crash also receives the message.
func stderrTo(log *os.File, crash io.Writer) error {
	if file, ok := crash.(*os.File); ok && int(file.Fd()) != unix.Stderr {
		if err := debug.SetCrashOutput(file, debug.CrashOptions{}); err != nil {
			return fmt.Errorf("log: %w", err)
		}
	}
	if err := unix.Dup2(int(log.Fd()), unix.Stderr); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// failInstead replaces the exit of a part with a call of fail, and ends only the part's goroutine. kube-apiserver and
// kube-controller-manager exit the process through klog if they cannot continue.
func failInstead(fail func(error)) {
	klog.OsExit = func(code int) {
		fail(fmt.Errorf("a part of Kubernetes gave up (exit code %d); the end of the log says why", code))
		runtime.Goexit()
	}
}
