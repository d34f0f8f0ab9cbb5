package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
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
			folder, err := try.Folder(dir)
			if err != nil {
				return usageError("%w; --dir says where it is", err)
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serveTry(ctx, c, folder, listen)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "the page's folder (default the folder web next to this program)")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8086", "the address to serve at")
	c.AddCommand(&cobra.Command{
		Use:    "build FOLDER",
		Short:  "Make the page's folder; it is for those who have the repository and Go",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(c *cobra.Command, args []string) error { return try.Build(c.Context(), ".", args[0], try.Best) },
	})
	return c
}

// serveTry serves the page until the context ends.
func serveTry(ctx context.Context, c *cobra.Command, folder fs.FS, listen string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	say(c.OutOrStdout(), "open http://%s\n", l.Addr())
	s := &http.Server{Handler: try.Handler(folder), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
