// SPDX-License-Identifier: MIT
import { h } from "./dom.js";

export const title = () => "Charts";
export const needs = () => [];
export function sample() {}
export function budget() {
    return null;
}
export function view() {
    return h("div", { class: "view" }, h("h1", null, "Charts"));
}
