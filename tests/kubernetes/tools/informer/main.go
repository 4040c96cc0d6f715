// informer: client-go's informers against the API server of KUBECONFIG. It prints what they see, in an order that does not
// depend on chance, so that the output of two servers can be compared. Its argument is a namespace, which it makes and deletes.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// How long anything may take: a bound for broken servers, not a measurement.
const limit = 60 * time.Second

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func main() {
	if len(os.Args) != 2 {
		end(fmt.Errorf("usage: informer NAMESPACE"))
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	end(err)
	config.QPS, config.Burst = 500, 500
	end(run(config, os.Args[1]))
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(config *rest.Config, namespace string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(config)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer client.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
	w := &world{ctx: ctx, client: client, namespace: namespace}

	// Each begins with what is left of the one before: a controller that starts again.
	for _, kind := range []struct {
		name string
		make func() cache.SharedIndexInformer
	}{
		{"typed", func() cache.SharedIndexInformer { return w.typed(config) }},
		{"dynamic", func() cache.SharedIndexInformer {
			client := dynamic.NewForConfigOrDie(config)
			return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, labelled).ForResource(configMaps).Informer()
		}},
		{"metadata", func() cache.SharedIndexInformer {
			client := metadata.NewForConfigOrDie(config)
			return metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, labelled).ForResource(configMaps).Informer()
		}},
		{"typed again", func() cache.SharedIndexInformer { return w.typed(config) }},
	} {
		fmt.Printf("== %s\n", kind.name)
		if err := w.watched(kind.make()); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	fmt.Println("== watch with the list before")
	return w.initialEvents()
}

func labelled(options *metav1.ListOptions) { options.LabelSelector = "seen=yes" }

type world struct {
	ctx       context.Context
	client    kubernetes.Interface
	namespace string
	turn      int
}

// typed: as controllers of built-in kinds ask, protobuf if the server has it, else JSON.
func (w *world) typed(config *rest.Config) cache.SharedIndexInformer {
	reader := rest.CopyConfig(config)
	reader.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(reader), 0,
		informers.WithNamespace(w.namespace), informers.WithTweakListOptions(labelled))
	return factory.Core().V1().ConfigMaps().Informer()
}

// watched runs an informer over a list and changes of every sort, then over a time in which nobody watches.
func (w *world) watched(informer cache.SharedIndexInformer) error {
	w.turn++
	told := &told{lines: map[string]int{}}
	if _, err := informer.AddEventHandler(told); err != nil {
		return err
	}
	// What is there before: "kept" from the turn before, "early", and what the selector hides.
	if err := w.apply("early", "yes"); err != nil {
		return err
	}
	if err := w.apply("hidden", "no"); err != nil {
		return err
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { informer.Run(stop) })
	defer running.Wait()
	defer close(stop)
	if !cache.WaitForCacheSync(w.ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("it does not sync")
	}
	for _, change := range []func() error{
		func() error { return w.apply("late", "yes") },
		func() error { return w.apply("early", "yes") },
		func() error { return w.apply("hidden", "yes") }, // comes into sight
		func() error { return w.apply("early", "no") },   // goes out of sight
		func() error { return w.apply("kept", "yes") },
		func() error { return w.remove("late") },
		func() error { return w.remove("hidden") },
		func() error { return w.remove("early") },
		func() error { return w.apply("last", "yes") },
	} {
		if err := change(); err != nil {
			return err
		}
	}
	// Events of a watch come in order: after the last one there is none to wait for.
	last := func() bool { return told.count("added last") > 0 }
	if err := await(w.ctx, "the event of the last change", last); err != nil {
		return err
	}
	if err := w.remove("last"); err != nil {
		return err
	}
	if err := await(w.ctx, "the deletion of the last", func() bool { return told.count("deleted last") > 0 }); err != nil {
		return err
	}
	told.print()
	keys := informer.GetStore().ListKeys()
	for i := range keys {
		keys[i] = strings.TrimPrefix(keys[i], w.namespace+"/")
	}
	slices.Sort(keys)
	fmt.Println("known at the end:", strings.Join(keys, " "))
	return nil
}

// initialEvents asks for a watch that begins with what is there, ended by a bookmark that says so.
func (w *world) initialEvents() error {
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	for _, name := range []string{"x", "y"} {
		if err := w.apply(name, "yes"); err != nil {
			return err
		}
	}
	yes := true
	options := metav1.ListOptions{
		LabelSelector: "seen=yes", SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	events, err := w.client.CoreV1().ConfigMaps(w.namespace).Watch(ctx, options)
	if err != nil {
		return err
	}
	var initial []string
	revision := ""
	for event := range events.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return fmt.Errorf("%s %v", event.Type, event.Object)
		}
		if event.Type == watch.Bookmark {
			revision = object.ResourceVersion
			fmt.Println("initial:", strings.Join(slices.Sorted(slices.Values(initial)), ", "))
			fmt.Println("bookmark ends them:", object.Annotations["k8s.io/initial-events-end"], "with a revision:", revision != "")
			break
		}
		initial = append(initial, string(event.Type)+" "+object.Name)
	}
	events.Stop()
	// What happens while nobody watches comes once, from the bookmark's revision on.
	if err := w.remove("x"); err != nil {
		return err
	}
	if err := w.apply("y", "no"); err != nil {
		return err
	}
	if err := w.apply("z", "yes"); err != nil {
		return err
	}
	events, err = w.client.CoreV1().ConfigMaps(w.namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "seen=yes", ResourceVersion: revision})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return fmt.Errorf("%s %v", event.Type, event.Object)
		}
		fmt.Println("resumed:", event.Type, object.Name)
		if object.Name == "z" {
			return nil
		}
	}
	return fmt.Errorf("the watch ended early")
}

// apply makes the ConfigMap be there with this label, changed in every turn.
func (w *world) apply(name, seen string) error {
	api := w.client.CoreV1().ConfigMaps(w.namespace)
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"seen": seen}},
		Data:       map[string]string{"turn": fmt.Sprint(w.turn)},
	}
	if known, err := api.Get(w.ctx, name, metav1.GetOptions{}); err == nil {
		object.ResourceVersion = known.ResourceVersion
		object.Data["before"] = known.ResourceVersion
		_, err = api.Update(w.ctx, object, metav1.UpdateOptions{})
		return err
	}
	_, err := api.Create(w.ctx, object, metav1.CreateOptions{})
	return err
}

func (w *world) remove(name string) error {
	return w.client.CoreV1().ConfigMaps(w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{})
}

// told counts what the handlers of an informer are told.
type told struct {
	sync.Mutex
	lines map[string]int
}

func (t *told) OnAdd(object any, initial bool) {
	if initial {
		t.add("listed", object)
	} else {
		t.add("added", object)
	}
}
func (t *told) OnUpdate(_, object any) { t.add("updated", object) }
func (t *told) OnDelete(object any)    { t.add("deleted", object) }

func (t *told) add(what string, object any) {
	name := "?"
	if known, ok := object.(metav1.Object); ok {
		name = known.GetName()
	}
	t.Lock()
	defer t.Unlock()
	t.lines[what+" "+name]++
}

func (t *told) count(line string) int {
	t.Lock()
	defer t.Unlock()
	return t.lines[line]
}

func (t *told) print() {
	t.Lock()
	defer t.Unlock()
	var lines []string
	for line, count := range t.lines {
		lines = append(lines, fmt.Sprintf("%s: %d", line, count))
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
}

func await(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
