package wiring

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
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
	for _, path := range paths {
		next := everything()
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
			{"the graph", GraphSettings(&base), GraphSettings(&next), config.Graph},
			{"embeddings", EncodingSettings(SettingsOf(&base)), EncodingSettings(SettingsOf(&next)), config.Encoding},
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
		built := !reflect.DeepEqual(SettingsOf(&base), SettingsOf(&next))
		narrowed := strings.HasPrefix(path, "sink.embedding_") // at once where it makes vectors smaller
		if want := effect == config.Encoding || effect == config.NextGeneration || narrowed; built != want {
			t.Errorf("%s has the effect %q; that a change of it is one of the next generation: %v", path, effect, built)
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
			case effect == "":
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
	const configuration = "giantstream/config"
	type listed struct {
		ImportPath, Export, Dir string
		GoFiles, Imports        []string
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,Imports",
		"giantstream/cmd/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, readers := map[string]string{}, []listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		switch {
		case p.ImportPath == configuration:
			p.GoFiles = []string{"config.go"} // the rest decodes and validates
			readers = append(readers, p)
		case slices.Contains(p.Imports, configuration):
			readers = append(readers, p)
		}
	}
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	read := map[string]bool{}
	for _, p := range readers {
		var syntax []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			syntax = append(syntax, f)
		}
		info := types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		check := types.Config{Importer: imports, Error: func(error) {}} // of config, this is one file of several
		_, _ = check.Check(p.ImportPath, files, syntax, &info)
		for _, s := range info.Selections {
			recv := s.Recv()
			if pointer, ok := recv.(*types.Pointer); ok {
				recv = pointer.Elem()
			}
			if section, ok := recv.(*types.Named); ok && s.Kind() == types.FieldVal && section.Obj().Pkg() != nil &&
				section.Obj().Pkg().Path() == configuration {
				read[section.Obj().Name()+"."+s.Obj().Name()] = true
			}
		}
	}
	return read
}
