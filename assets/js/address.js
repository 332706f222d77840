// The address of the page: it always holds what is shown; the platform's own keys stay in it.

const RESERVED = ["__theme", "deep_link", "__sign", "logs"]; // keys that belong to the platform
const PAUSE_MS = 120; // writing takes milliseconds that belong to the picture

/** Whether the page was opened with a link. */
export const asksForSomething = () => [...new URLSearchParams(location.search).keys()].some(key => !RESERVED.includes(key));

export class Address {
  write(query) {
    const now = new URLSearchParams(location.search);
    const own = RESERVED.filter(key => now.has(key)).map(key => `${key}=${encodeURIComponent(now.get(key))}`);
    const text = [query, ...own].filter(Boolean).join("&"), search = text ? `?${text}` : "";
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      if (search !== location.search) history.replaceState(null, "", location.pathname + search + location.hash);
    }, PAUSE_MS);
  }
}
