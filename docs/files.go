package docs

import (
	"fmt"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
)

// File is one generated document.
type File struct {
	// Name is its name in this folder.
	Name string
	Data []byte
}

// Files writes all generated documents. An error is a mistake of the declarations, or of a shipped table.
func Files() ([]File, error) {
	lang, err := rules.NewLanguage(policy.Vocabulary())
	if err != nil {
		return nil, err
	}
	shipped, issues := policy.Shipped()
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("shipped tables: %w", err)
	}
	language, err := languageReference(lang, shipped)
	if err != nil {
		return nil, err
	}
	tables, err := tableReference(shipped)
	if err != nil {
		return nil, err
	}
	machines, err := lifecycles()
	if err != nil {
		return nil, err
	}
	plugins, err := jobPlugins()
	if err != nil {
		return nil, err
	}
	metrics, err := metricsReference(counting())
	if err != nil {
		return nil, err
	}
	return []File{
		{"rule-language.md", language}, {"tables.md", tables}, {"lifecycles.md", machines}, {"job-plugins.md", plugins}, {"metrics.md", metrics},
	}, nil
}
