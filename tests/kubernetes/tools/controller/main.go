// controller: a small controller-runtime program against the API server of KUBECONFIG: a kind of its own, owned ConfigMaps,
// status, finalizer, leader election. It prints states that it waited for, not what happened on the way, so that the output of two
// servers can be compared. Its argument is a namespace, which it makes and deletes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

const (
	limit     = 60 * time.Second
	finalizer = "ferrostack.test/widget"
	lease     = "widget-controller"
)

const definition = `
metadata: {name: widgets.controller.ferrostack.test}
spec:
  group: controller.ferrostack.test
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [count]
            properties:
              count: {type: integer, minimum: 0, maximum: 9}
              colour: {type: string, enum: [red, blue], default: red}
            x-kubernetes-validations:
            - {rule: "self.colour == oldSelf.colour", message: "the colour of a widget is for ever"}
          status:
            type: object
            properties:
              ready: {type: integer}
              observedGeneration: {type: integer}
`

var group = schema.GroupVersion{Group: "controller.ferrostack.test", Version: "v1"}

// Widget has as many ConfigMaps as its count says.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}
type WidgetSpec struct {
	Count  int    `json:"count"`
	Colour string `json:"colour,omitempty"`
}
type WidgetStatus struct {
	Ready              int   `json:"ready"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	out.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &out
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = slices.Clone(l.Items)
	return &out
}

func main() {
	if len(os.Args) != 2 {
		end(fmt.Errorf("usage: controller NAMESPACE"))
	}
	ctrl.SetLogger(logr.Discard())
	end(apiextensionsv1.AddToScheme(scheme.Scheme))
	scheme.Scheme.AddKnownTypes(group, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme.Scheme, group)
	end(run(os.Args[1]))
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func run(namespace string) (err error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 500, 500
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	t := &trial{Client: c, namespace: namespace}
	var cancel context.CancelFunc
	t.ctx, cancel = context.WithTimeout(context.Background(), 2*limit)
	defer cancel()
	defer func() { err = errors.Join(err, t.tidy()) }()
	if err := t.prepare(); err != nil {
		return err
	}

	// Leads once, ends, and leads again: nothing is made twice, what happened meanwhile is seen.
	for turn, play := range []func() error{t.first, t.second} {
		fmt.Printf("== manager %d\n", turn+1)
		manager, err := ctrl.NewManager(config, ctrl.Options{
			Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
			Metrics:                       server.Options{BindAddress: "0"},
			LeaderElection:                true,
			LeaderElectionID:              lease,
			LeaderElectionNamespace:       namespace,
			LeaderElectionReleaseOnCancel: true,
		})
		if err != nil {
			return err
		}
		controller := &reconciler{manager.GetClient()}
		builder := ctrl.NewControllerManagedBy(manager).Named(fmt.Sprintf("widget-%d", turn)).For(&Widget{}).Owns(&corev1.ConfigMap{})
		if err := builder.Complete(controller); err != nil {
			return err
		}
		running, stop := context.WithCancel(t.ctx)
		ended := make(chan error, 1)
		go func() { ended <- manager.Start(running) }()
		select {
		case <-manager.Elected():
			fmt.Println("elected; the lease has a holder:", t.holder() != "")
		case err := <-ended:
			stop()
			return fmt.Errorf("the manager ended: %w", err)
		}
		played := play()
		stop()
		if err := errors.Join(played, <-ended); err != nil {
			return err
		}
		fmt.Println("ended; the lease has a holder:", t.holder() != "")
		if turn == 0 {
			if err := t.meanwhile(); err != nil {
				return err
			}
		}
	}
	return nil
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, r.Update(ctx, widget)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		return ctrl.Result{}, r.Update(ctx, widget)
	}
	for i := range 10 {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: fmt.Sprintf("%s-%d", widget.Name, i)}}
		if i >= widget.Spec.Count {
			if err := r.Get(ctx, client.ObjectKeyFromObject(child), child); err == nil {
				if err := r.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
					return ctrl.Result{}, err
				}
			}
			continue
		}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
			child.Data = map[string]string{"colour": widget.Spec.Colour}
			return controllerutil.SetControllerReference(widget, child, scheme.Scheme)
		})
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	before := widget.DeepCopyObject().(*Widget)
	widget.Status = WidgetStatus{Ready: widget.Spec.Count, ObservedGeneration: widget.Generation}
	return ctrl.Result{}, r.Status().Patch(ctx, widget, client.MergeFrom(before))
}

// trial is the person at the other side.
type trial struct {
	client.Client
	ctx       context.Context
	namespace string
}

func (t *trial) prepare() error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(definition), crd); err != nil {
		return err
	}
	if err := t.Create(t.ctx, crd); err != nil {
		return err
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}
	if err := t.Create(t.ctx, space); err != nil {
		return err
	}
	return t.await("the definition to be established", func() (bool, error) {
		if err := t.Get(t.ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return false, err
		}
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}), nil
	})
}

// tidy removes what prepare made.
func (t *trial) tidy() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group.Group}}
	return errors.Join(client.IgnoreNotFound(t.Delete(ctx, space)), client.IgnoreNotFound(t.Delete(ctx, crd)))
}

func (t *trial) first() error {
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "w"}, Spec: WidgetSpec{Count: 2}}
	if err := t.Create(t.ctx, widget); err != nil {
		return err
	}
	if err := t.settled("created"); err != nil {
		return err
	}
	if err := t.change("scaled up", `{"spec":{"count":4}}`); err != nil {
		return err
	}
	if err := t.change("scaled down", `{"spec":{"count":3}}`); err != nil {
		return err
	}
	for _, wrong := range []string{`{"spec":{"count":-1}}`, `{"spec":{"count":"two"}}`, `{"spec":{"colour":"green"}}`, `{"spec":{"colour":"blue"}}`} {
		fmt.Println("refused:", t.patch(wrong))
	}
	// An owned object that goes comes back.
	child := &corev1.ConfigMap{}
	if err := t.Get(t.ctx, types.NamespacedName{Namespace: t.namespace, Name: "w-1"}, child); err != nil {
		return err
	}
	old := child.UID
	if err := t.Delete(t.ctx, child); err != nil {
		return err
	}
	err := t.await("the child to come back", func() (bool, error) {
		again := &corev1.ConfigMap{}
		err := t.Get(t.ctx, client.ObjectKeyFromObject(child), again)
		return err == nil && again.UID != old, client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return t.settled("a child was deleted")
}

// meanwhile happens while no manager runs.
func (t *trial) meanwhile() error {
	if err := t.patch(`{"spec":{"count":1}}`); err != nil {
		return err
	}
	return t.Create(t.ctx, &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "v"}, Spec: WidgetSpec{Count: 1, Colour: "blue"}})
}

func (t *trial) second() error {
	if err := t.settled("changed while nobody ran"); err != nil {
		return err
	}
	// The finalizer goes, then the widget, then the collector takes what it owns.
	for _, name := range []string{"w", "v"} {
		widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}}
		if err := t.Delete(t.ctx, widget); err != nil {
			return err
		}
	}
	err := t.await("everything to go", func() (bool, error) {
		widgets := &WidgetList{}
		err := t.List(t.ctx, widgets, client.InNamespace(t.namespace))
		children, problem := t.children()
		return len(widgets.Items) == 0 && len(children) == 0, errors.Join(err, problem)
	})
	if err == nil {
		fmt.Println("deleted, with everything that was owned")
	}
	return err
}

func (t *trial) change(what, patch string) error {
	if err := t.patch(patch); err != nil {
		return err
	}
	return t.settled(what)
}

func (t *trial) patch(patch string) error {
	widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "w"}}
	return t.Patch(t.ctx, widget, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// settled waits until every widget has the children that it wants, and prints them.
func (t *trial) settled(what string) error {
	widgets := &WidgetList{}
	var children []string
	err := t.await(what, func() (bool, error) {
		if err := t.List(t.ctx, widgets, client.InNamespace(t.namespace)); err != nil {
			return false, err
		}
		wanted := 0
		for _, widget := range widgets.Items {
			if widget.Status.ObservedGeneration != widget.Generation {
				return false, nil
			}
			wanted += widget.Spec.Count
		}
		var err error
		children, err = t.children()
		return len(children) == wanted, err
	})
	if err != nil {
		return err
	}
	fmt.Println(what + ":")
	for _, widget := range widgets.Items {
		fmt.Printf("  widget %s generation %d count %d colour %s ready %d finalizers %v\n", widget.Name, widget.Generation,
			widget.Spec.Count, widget.Spec.Colour, widget.Status.Ready, widget.Finalizers)
	}
	fmt.Println("  children " + strings.Join(children, " "))
	return nil
}

func (t *trial) children() ([]string, error) {
	maps := &corev1.ConfigMapList{}
	if err := t.List(t.ctx, maps, client.InNamespace(t.namespace)); err != nil {
		return nil, err
	}
	var children []string
	for _, child := range maps.Items {
		if owner := metav1.GetControllerOf(&child); owner != nil {
			children = append(children, fmt.Sprintf("%s(%s of %s)", child.Name, child.Data["colour"], owner.Name))
		}
	}
	slices.Sort(children)
	return children, nil
}

func (t *trial) holder() string {
	found := &coordinationv1.Lease{}
	if err := t.Get(t.ctx, types.NamespacedName{Namespace: t.namespace, Name: lease}, found); err != nil || found.Spec.HolderIdentity == nil {
		return ""
	}
	return *found.Spec.HolderIdentity
}

func (t *trial) await(what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	for {
		yes, err := done()
		if yes || err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
