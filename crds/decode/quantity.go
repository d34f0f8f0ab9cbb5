package decode

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The bounds of a quantity's text. They are far beyond any amount there is; the manifests have the same.
const (
	// MaxExponentDigits is how many digits an exponent may have: parsing takes time by its value.
	MaxExponentDigits = 3
	// MaxQuantityLength is how long the text may be: parsing takes time by the square of that.
	MaxQuantityLength = 64
)

// Quantity is resource.ParseQuantity for a text that anybody may have written.
func Quantity(text string) (resource.Quantity, error) {
	if len(text) > MaxQuantityLength {
		return resource.Quantity{}, fmt.Errorf("must be a quantity of at most %d characters", MaxQuantityLength)
	}
	if i := strings.LastIndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-")) > MaxExponentDigits {
		return resource.Quantity{}, fmt.Errorf("must be a quantity such as 500m or 16Gi, with an exponent of at most %d digits",
			MaxExponentDigits)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return q, fmt.Errorf("must be a quantity such as 500m or 16Gi")
	}
	return q, nil
}

// Suspicious says whether JSON has a string that could be a quantity which takes long to parse. It looks at
// nothing but the ends of strings, and is cheap beside decoding.
func Suspicious(data []byte) bool {
	for end := 0; ; end++ {
		next := bytes.IndexByte(data[end:], '"')
		if next < 0 {
			return false
		}
		end += next
		if end > MaxExponentDigits && isDigit(data[end-1]) && longNumber(data[:end]) {
			return true
		}
	}
}

// longNumber says whether text ends in a number with a long exponent, or in very many digits.
func longNumber(text []byte) bool {
	at := len(text)
	for at > 0 && isDigit(text[at-1]) {
		at--
	}
	digits := len(text) - at
	if digits > MaxQuantityLength/2 {
		return true
	}
	if at > 0 && (text[at-1] == '+' || text[at-1] == '-') {
		at--
	}
	return digits > MaxExponentDigits && at > 1 && text[at-1]|' ' == 'e' && (isDigit(text[at-2]) || text[at-2] == '.')
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
