// To a place on the page, and there until what lies above it has its height: figures are drawn as they come into sight.

const SETTLED_MS = 1000;
const OWN_WAY = ["wheel", "touchstart", "pointerdown", "keydown"]; // then the visitor goes on alone

/** Bring the upper edge of a node to the window's, below its scroll margin. */
export function land(node) {
  const until = performance.now() + SETTLED_MS;
  let going = true;
  const stop = () => { going = false; };
  OWN_WAY.forEach(type => addEventListener(type, stop, {once: true, passive: true, capture: true}));
  const align = () => {
    if (going && node.isConnected) node.scrollIntoView({behavior: "instant", block: "start"});
    if (going && performance.now() < until) requestAnimationFrame(align);
    else OWN_WAY.forEach(type => removeEventListener(type, stop, {capture: true}));
  };
  align();
}
