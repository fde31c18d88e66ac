// SPDX-License-Identifier: MIT
/* A card with a table: its name, its heads as [text, whether of numbers], its rows as lists of cells. */

import { h } from "./dom.js";

export function table(id, name, heads, rows, empty) {
    return h(
        "section",
        { class: "card wide", "aria-labelledby": id },
        h("h2", { id }, name),
        rows.length === 0 && empty
            ? h("p", { class: "empty" }, empty)
            : h(
                  "div",
                  { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": id },
                  h(
                      "table",
                      null,
                      h(
                          "thead",
                          null,
                          h(
                              "tr",
                              null,
                              heads.map(([text, numeric]) =>
                                  h("th", { scope: "col", class: numeric ? "num" : "" }, text),
                              ),
                          ),
                      ),
                      h(
                          "tbody",
                          null,
                          rows.map((cells) =>
                              cells instanceof Node
                                  ? cells
                                  : h(
                                        "tr",
                                        null,
                                        cells.map((cell, at) =>
                                            at === 0
                                                ? h("th", { scope: "row" }, cell)
                                                : h("td", { class: heads[at][1] ? "num" : "" }, cell),
                                        ),
                                    ),
                          ),
                      ),
                  ),
              ),
    );
}
