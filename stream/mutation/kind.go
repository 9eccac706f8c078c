package mutation

// MaxKindBytes bounds the name of a kind of links.
const MaxKindBytes = 64

// Kind says what a link means. Links of several kinds between two nodes are several links. The zero value is the kind
// of links that state none.
type Kind struct {
	// Name has no zero bytes.
	Name string
	// Directed links make labels of their far ends alone, in an undirected graph, too.
	Directed bool
}

// Compare orders kinds by name.
func (k Kind) Compare(other Kind) int {
	switch {
	case k.Name != other.Name:
		if k.Name < other.Name {
			return -1
		}
		return 1
	case k.Directed == other.Directed:
		return 0
	case other.Directed:
		return -1
	}
	return 1
}
