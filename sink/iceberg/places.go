package iceberg

import "maps"

// Place is where the row of a node is.
type Place struct {
	File    uint32 // a number that Index gives to a data file
	Row     uint32 // of the file
	Version int64  // of the row: its offset on the topic, or its manifest
}

// Places is an index of the table's rows: for each branch, by the serial of its vectordb.Table, the place of every
// node. It is made anew by every process, and used by one goroutine at a time.
type Places interface {
	Get(serial int64, node string) (p Place, ok bool, err error)
	// Change removes nodes and then sets others.
	Change(serial int64, gone []string, set map[string]Place) error
	// Range calls do for every node, in any order, until do returns false.
	Range(serial int64, do func(node string, p Place) bool) error
	// Drop removes all nodes.
	Drop(serial int64) error
}

// Memory is Places for tests and small tables.
type Memory map[int64]map[string]Place

// Get implements Places.
func (m Memory) Get(serial int64, node string) (Place, bool, error) {
	p, ok := m[serial][node]
	return p, ok, nil
}

// Change implements Places.
func (m Memory) Change(serial int64, gone []string, set map[string]Place) error {
	if m[serial] == nil {
		m[serial] = map[string]Place{}
	}
	for _, node := range gone {
		delete(m[serial], node)
	}
	maps.Copy(m[serial], set)
	return nil
}

// Range implements Places.
func (m Memory) Range(serial int64, do func(string, Place) bool) error {
	for node, p := range m[serial] {
		if !do(node, p) {
			break
		}
	}
	return nil
}

// Drop implements Places.
func (m Memory) Drop(serial int64) error {
	delete(m, serial)
	return nil
}
