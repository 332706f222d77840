// The share dialog: the link of what is shown, its QR code, and a snippet that embeds it in another page.

import {h, icon, setHtml, setText} from "./dom.js";

const OUT = "M11.5 4H16V8.5M16 4L9.5 10.5M14 11.5V15.5H4.5V6H8.5";
const EMBED_HEIGHT = 720;
const SAID_MS = 2000;

const escaped = text => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** Whether the page stands in another one, as on a Space. */
export const inside = () => {
  try {
    return window.top !== window.self;
  } catch {
    return true;
  }
};

/** The page's own address, without what it is asked. */
const base = () => location.origin + location.pathname;

export class Share {
  /** ask: the server; compose() -> the state's request. */
  constructor({texts, ask, compose}) {
    Object.assign(this, {texts, ask, compose});
    this.link = this.row("link", texts.share_link, texts.share_copy);
    this.embed = this.row("embed", texts.share_embed, texts.share_copy_embed);
    this.code = h("div", {class: "share-code", role: "img", "aria-label": texts.share_code, dataset: {qr: ""}});
    this.note = h("p", {class: "quiet share-note", role: "status", dataset: {shareNote: ""}});
    this.present = h("input", {type: "checkbox", id: "share-present", onchange: () => this.fetch()});
    this.open = h("a", {class: "share-open", target: "_blank", rel: "noopener"}, texts.share_open, icon(OUT));
    this.around = h("p", {class: "quiet", hidden: !inside()}, texts.share_inside, " ", this.open);
    this.body = h("div", {class: "share-body"}, h("div", {class: "share-rows"}, this.link.node, h("label", {class: "tick share-tick"}, this.present, texts.share_present), this.embed.node), this.code);
    this.node = h("dialog", {class: "card share", "aria-labelledby": "share-title"},
      h("h2", {id: "share-title"}, texts.share_title), this.around, this.body, this.note,
      h("form", {method: "dialog"}, h("button", {class: "plain"}, texts.close)));
    this.node.addEventListener("click", event => { if (event.target === this.node) this.node.close(); });
  }

  row(name, label, action) {
    const id = `share-${name}`, field = h("input", {id, type: "text", readonly: true, spellcheck: "false", dataset: {share: name}, onfocus: event => event.target.select()});
    const words = h("span", {}, action);
    const button = h("button", {type: "button", class: "plain", dataset: {copy: name}, onclick: () => this.copy(field, words, action)}, words);
    return {field, button, node: h("div", {class: "share-row"}, h("label", {for: id}, label), field, button)};
  }

  show(present) {
    this.present.checked = present;
    setText(this.note, "");
    this.node.showModal();
    this.fetch();
  }

  async fetch() {
    const asked = (this.asked = {}), present = this.present.checked;
    try {
      const answer = JSON.parse(await this.ask(JSON.stringify({...this.compose(), want: ["share"], share: {base: base(), present}})));
      if (asked === this.asked) this.fill(answer.ok ? answer.share : {query: "", code: "", note: Object.values(answer.errors).join(" ")});
    } catch {
      if (asked === this.asked) this.fill({query: "", code: "", note: this.texts.gave_up});
    }
  }

  fill({query, code, note}) {
    const address = query && `${base()}?${query}`;
    this.body.hidden = !query;
    this.code.hidden = !code;
    this.link.field.value = address;
    this.embed.field.value = query && `<iframe src="${escaped(address)}" width="100%" height="${EMBED_HEIGHT}" style="border:0" title="MiniMind Block Explorer" allow="clipboard-write"></iframe>`;
    this.open.href = address || base();
    setHtml(this.code, code); // an <svg> of the server's making
    setText(this.note, query ? note : `${this.texts.share_unlinked} ${note}`);
    this.note.classList.toggle("error", !query);
  }

  /** To the clipboard; where that is closed to us, the text stands selected and the keys are named. */
  async copy(field, words, action) {
    let done = false;
    try {
      await navigator.clipboard.writeText(field.value);
      done = true;
    } catch {
      field.focus();
      field.select();
      try {
        done = document.execCommand("copy");
      } catch {}
    }
    if (!done) return setText(this.note, this.texts.share_not_copied);
    setText(words, this.texts.share_copied);
    clearTimeout(this.saying);
    this.saying = setTimeout(() => setText(words, action), SAID_MS);
    return undefined;
  }
}
