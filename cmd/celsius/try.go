package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/cmd/celsius/try"
)

const tryHelp = `Try serves a page on which a policy and a world are edited, and what simulate
says of them is shown as they are typed. The simulator runs in the browser;
nothing that is typed there is sent anywhere.

The page's folder is made by make web. It may as well be put on any server of
files.`

func newTryCommand() *cobra.Command {
	var dir, listen string
	c := &cobra.Command{
		Use:     "try",
		Short:   "Serve a page on which policies are tried in the browser",
		Long:    tryHelp,
		Example: "  make web && bin/celsius try",
		Args:    unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				dir = besideProgram("web")
			}
			if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
				return usageError("%s does not hold the page: make web writes it to bin/web; --dir says where it is", dir)
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serveTry(ctx, c, dir, listen)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the page's folder (default the folder web beside this program)")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8086", "the address to serve at")
	c.AddCommand(&cobra.Command{
		Use:    "build FOLDER",
		Short:  "Make the page's folder; it is for those who have the repository and Go",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(c *cobra.Command, args []string) error { return try.Build(c.Context(), ".", args[0]) },
	})
	return c
}

// besideProgram is a path in the folder of this program.
func besideProgram(name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(self), name)
}

// serveTry serves until the context ends.
func serveTry(ctx context.Context, c *cobra.Command, dir, listen string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	say(c.OutOrStdout(), "open http://%s\n", l.Addr())
	s := &http.Server{Handler: try.Handler(os.DirFS(dir)), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
