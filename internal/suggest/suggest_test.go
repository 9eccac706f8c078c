package suggest

import "testing"

func TestNearest(t *testing.T) {
	fields := []string{"sku", "title", "tags_list", "also_bought", "Body (HTML)", "id"}
	for word, want := range map[string]string{
		"tags_lits": "tags_list", "also_bougth": "also_bought", "SKU": "sku", "Title": "title", "titel": "title",
		"body": "Body (HTML)", "x": "", "price": "", "sk": "sku", "": "",
	} {
		if got := Nearest(word, fields); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
