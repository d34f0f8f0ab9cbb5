package bench

import "testing"

// TestFreeAddress requests many addresses that no process has opened yet. No address may be returned twice.
func TestFreeAddress(t *testing.T) {
	given := map[string]bool{}
	for range 300 {
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if given[address] {
			t.Fatalf("%s is given twice", address)
		}
		given[address] = true
	}
}
