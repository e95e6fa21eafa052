// Renders a Helm chart as "helm template" does, for machines without helm, and prints its manifests as a JSON array.
// Arguments: the folder of the chart, the name of the release, install or upgrade, and values as YAML or JSON.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) []byte {
	text, err := os.ReadFile(path)
	check(err)
	return text
}

// merged replaces values of the chart by given ones; maps are merged.
func merged(base object, given object) object {
	for name, value := range given {
		inner, isMap := value.(object)
		old, wasMap := base[name].(object)
		if isMap && wasMap {
			value = merged(old, inner)
		}
		base[name] = value
	}
	return base
}

func main() {
	folder, release, action := os.Args[1], os.Args[2], os.Args[3]
	values, chart, given := object{}, object{}, object{}
	check(yaml.UnmarshalStrict([]byte(os.Args[4]), &given))
	check(yaml.UnmarshalStrict(read(filepath.Join(folder, "values.yaml")), &values))
	check(yaml.UnmarshalStrict(read(filepath.Join(folder, "Chart.yaml")), &chart))
	for name, value := range chart {
		chart[strings.ToUpper(name[:1])+name[1:]] = value
	}
	scope := object{
		"Chart":  chart,
		"Values": merged(values, given),
		"Release": object{
			"Name": release, "Namespace": "default", "Service": "Helm",
			"IsInstall": action == "install", "IsUpgrade": action == "upgrade",
		},
	}

	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	check(err)
	for _, file := range files {
		_, err := all.New(filepath.Base(file)).Parse(string(read(file)))
		check(err)
	}

	manifests := []json.RawMessage{}
	separator := regexp.MustCompile(`(?m)^---$`)
	for _, file := range files {
		var text bytes.Buffer
		check(all.ExecuteTemplate(&text, filepath.Base(file), scope))
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for _, document := range separator.Split(text.String(), -1) {
			if strings.TrimSpace(document) == "" {
				continue
			}
			manifest, err := yaml.YAMLToJSONStrict([]byte(document))
			check(err)
			manifests = append(manifests, manifest)
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(manifests))
}
