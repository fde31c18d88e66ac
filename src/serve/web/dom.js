// SPDX-License-Identifier: MIT
/*
 * Elements from data, and a page that becomes the next one without losing its focus.
 *
 * No text is ever read as markup: nodes are made one by one, and what comes from outside goes into text nodes and
 * attributes. A view builds its whole tree each time; `morph` changes what is there into it, so that focus, selection
 * and scroll positions stay.
 */

const SVG = "http://www.w3.org/2000/svg";

function add(element, child) {
    if (Array.isArray(child)) child.forEach((one) => add(element, one));
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
}

function fill(element, props, children) {
    element.handlers = {};
    element.vars = props?.vars ?? {};
    for (const [name, value] of Object.entries(props ?? {})) {
        if (name === "vars" || value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) element.handlers[name] = value;
        else if (name === "value" || name === "checked") element[name] = value;
        else element.setAttribute(name, value === true ? "" : String(value));
    }
    Object.assign(element, element.handlers);
    for (const [name, value] of Object.entries(element.vars)) element.style.setProperty(name, value);
    children.forEach((child) => add(element, child));
    return element;
}

/** An element. `on...` are handlers, `vars` CSS properties; false, null and undefined are left out. */
export function h(tag, props, ...children) {
    return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
    return fill(document.createElementNS(SVG, tag), props, children);
}

function sameKind(old, fresh) {
    return (
        old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && old.dataset?.key === fresh.dataset?.key
    );
}

function attributes(old, fresh) {
    for (const { name, value } of [...fresh.attributes]) {
        if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
        if (name !== "style" && name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
}

function properties(old, fresh) {
    for (const name of Object.keys(old.handlers ?? {})) if (!(name in fresh.handlers)) old[name] = null;
    Object.assign(old, fresh.handlers);
    old.handlers = fresh.handlers;
    for (const name of Object.keys(old.vars ?? {})) if (!(name in fresh.vars)) old.style.removeProperty(name);
    for (const [name, value] of Object.entries(fresh.vars)) {
        if (old.vars?.[name] !== value) old.style.setProperty(name, value);
    }
    old.vars = fresh.vars;
    if ("value" in old && old !== document.activeElement && old.value !== fresh.value) old.value = fresh.value;
    if ("checked" in old && old.checked !== fresh.checked) old.checked = fresh.checked;
}

/** The child that the fresh one is the next state of: the one with its key, else the one at its place. */
function counterpart(parent, at, fresh) {
    const key = fresh.dataset?.key;
    if (key === undefined) return parent.childNodes[at];
    for (let i = at; i < parent.childNodes.length; i++) {
        if (parent.childNodes[i].dataset?.key === key) return parent.childNodes[i];
    }
    return undefined;
}

/** `old` becomes `fresh`, or gives way to it. What has `data-keep` looks after its inside itself. */
export function morph(old, fresh) {
    if (!sameKind(old, fresh)) {
        old.replaceWith(fresh);
        return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
        if (old.data !== fresh.data) old.data = fresh.data;
        return;
    }
    attributes(old, fresh);
    if (fresh.handlers) properties(old, fresh);
    if (fresh.dataset?.keep === undefined) morphChildren(old, fresh);
}

export function morphChildren(old, fresh) {
    const wanted = [...fresh.childNodes];
    wanted.forEach((next, at) => {
        const found = counterpart(old, at, next);
        const here = old.childNodes[at];
        if (found === undefined || !sameKind(found, next)) {
            if (here === undefined) old.append(next);
            else if (next.dataset?.key !== undefined || here.dataset?.key !== undefined) old.insertBefore(next, here);
            else here.replaceWith(next);
            return;
        }
        if (found !== here) old.insertBefore(found, here);
        morph(found, next);
    });
    while (old.childNodes.length > wanted.length) old.lastChild.remove();
}

/** The whole inside of an element. */
export function render(element, ...children) {
    morphChildren(element, h("div", null, ...children));
}

/** What a view has chosen by itself has changed: it is drawn again. */
export function redraw() {
    document.dispatchEvent(new Event("redraw"));
}
