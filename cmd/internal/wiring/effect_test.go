package wiring

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"giantstream/config"
)

// everything is a configuration in which each field matters: no field hides another.
func everything() config.Config {
	c := config.Default()
	c.Kafka.Topics.Mirror = "mirror"
	c.Ingest.Nodes.Attributes, c.Ingest.Attributes.Fields = config.List{"brand"}, config.List{"prices/price:number"}
	c.Train.Encoder, c.Train.BERT.Model, c.Train.MaxInstances = "bert", "model", 1000
	return c
}

// change gives a field another value.
func change(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.125)
	case reflect.Slice:
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 1, 1+v.Len()), v))
	default:
		t.Fatalf("%s has the kind %v, which this test cannot change", path, v.Kind())
	}
}

// changed returns the names that two sets of settings have different values of.
func changed(before, after map[string]string) (names []string) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for name := range all {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	return names
}

// A change of a field has the consequence that its effect promises, and no other: of a graph, the store is for another
// one; of an encoding, the generation's embeddings are others; of a generation, it is built with other settings.
func TestEachFieldHasTheEffectThatItSays(t *testing.T) {
	base := everything()
	var paths []string
	base.EachField(func(path string, _ reflect.Value, _ config.Effect) { paths = append(paths, path) })
	if len(paths) < 100 {
		t.Fatalf("the configuration has %d fields", len(paths))
	}
	graph, built := GraphSettings(&base), SettingsOf(&base)
	embeddings := EncodingSettings(built)
	for _, path := range paths {
		next := base
		var effect config.Effect
		next.EachField(func(p string, v reflect.Value, e config.Effect) {
			if p == path {
				effect = e
				change(t, path, v)
			}
		})
		for _, settings := range []struct {
			what          string
			before, after map[string]string
			effect        config.Effect
		}{
			{"the graph", graph, GraphSettings(&next), config.Graph},
			{"embeddings", embeddings, EncodingSettings(SettingsOf(&next)), config.Encoding},
		} {
			names := changed(settings.before, settings.after)
			// Whether there is a mirror topic, and which settings an encoder has, are consequences.
			alone := path != "ingest.undirected" && path != "train.encoder"
			switch noticed := slices.Contains(names, path); {
			case noticed != (effect == settings.effect):
				t.Errorf("%s has the effect %q; that a change of it is one of %s: %v", path, effect, settings.what, noticed)
			case alone && len(names) > 1, alone && !noticed && len(names) > 0:
				t.Errorf("a change of %s is one of %q", path, names)
			}
		}
		identity := !reflect.DeepEqual(IdentityOf(&base), IdentityOf(&next))
		if want := effect == config.Graph || effect == config.NewPipeline && path != "store"; identity != want {
			t.Errorf("%s has the effect %q; that a change of it is one of the store's identity: %v", path, effect, identity)
		}
		rebuilt := !reflect.DeepEqual(built, SettingsOf(&next))
		narrowed := strings.HasPrefix(path, "sink.embedding_") // at once where it makes vectors smaller
		if want := effect == config.Encoding || effect == config.NextGeneration || narrowed; rebuilt != want {
			t.Errorf("%s has the effect %q; that a change of it is one of the next generation: %v", path, effect, rebuilt)
		}
	}
}

// Each field is read by a program. Fields that decide the graph or embeddings are read by their tags, as
// TestEachFieldHasTheEffectThatItSays shows.
func TestEachFieldIsRead(t *testing.T) {
	read := fieldsRead(t)
	var walk func(section reflect.Type, path string)
	walk = func(section reflect.Type, path string) {
		for _, f := range reflect.VisibleFields(section) {
			name, effect := path+f.Tag.Get("yaml"), config.Effect(f.Tag.Get("effect"))
			switch {
			case !f.IsExported(), effect == config.Encoding, effect == config.Graph:
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type, name+".")
			case !read[section.Name()+"."+f.Name]:
				t.Errorf("nothing reads %s (config.%s.%s): give it to what it is for", name, section.Name(), f.Name)
			}
		}
	}
	walk(reflect.TypeFor[config.Config](), "")
}

// fieldsRead returns the fields of the configuration's sections that the programs read, as Section.Field.
func fieldsRead(t *testing.T) map[string]bool {
	t.Helper()
	r := reader{files: token.NewFileSet(), packages: map[string]*types.Package{}, read: map[string]bool{}}
	err := filepath.WalkDir(filepath.Join(moduleRoot, "cmd"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "testdata" {
			return fs.SkipDir // a module of its own
		}
		rel, err := filepath.Rel(moduleRoot, path)
		if err == nil {
			_, err = r.Import("giantstream/" + filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.read
}

const moduleRoot, configuration = "../../..", "giantstream/config"

// reader type-checks the configuration and what imports it. It knows nothing of other packages, so that expressions
// that need them have no type: they are none of the configuration.
type reader struct {
	files    *token.FileSet
	packages map[string]*types.Package
	read     map[string]bool
}

// Import implements types.Importer.
func (r *reader) Import(path string) (*types.Package, error) {
	if p := r.packages[path]; p != nil {
		return p, nil
	}
	dir, ours := strings.CutPrefix(path, "giantstream/")
	if !ours || path != configuration && !strings.HasPrefix(dir, "cmd/") {
		p := types.NewPackage(path, filepath.Base(path))
		p.MarkComplete()
		r.packages[path] = p
		return p, nil
	}
	source, err := build.ImportDir(filepath.Join(moduleRoot, dir), 0)
	if _, none := errors.AsType[*build.NoGoError](err); err != nil && !none {
		return nil, err
	}
	var syntax []*ast.File
	for _, name := range source.GoFiles {
		f, err := parser.ParseFile(r.files, filepath.Join(source.Dir, name), nil, 0)
		if err != nil {
			return nil, err
		}
		syntax = append(syntax, f)
	}
	info := types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	check := types.Config{Importer: r, Error: func(error) {}} // of what other packages have
	r.packages[path], _ = check.Check(path, r.files, syntax, &info)
	for at, s := range info.Selections {
		recv := s.Recv()
		if pointer, ok := recv.(*types.Pointer); ok {
			recv = pointer.Elem()
		}
		section, ok := recv.(*types.Named)
		if !ok || s.Kind() != types.FieldVal || section.Obj().Pkg().Path() != configuration {
			continue
		}
		// The configuration decodes and validates all fields, and reads them in the methods of config.go alone.
		if path != configuration || filepath.Base(r.files.Position(at.Pos()).Filename) == "config.go" {
			r.read[section.Obj().Name()+"."+s.Obj().Name()] = true
		}
	}
	return r.packages[path], nil
}
