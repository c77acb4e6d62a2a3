// The viewer page: OpenSeadragon on one image and its pages, with the page's own buttons.
"use strict";

(() => {
  const KEYS = {
    "+": "zoom-in", "=": "zoom-in", "-": "zoom-out", "_": "zoom-out", 0: "whole", r: "turn", f: "full",
    PageUp: "previous", PageDown: "next",
  };
  const find = (id) => document.getElementById(id);
  const stage = find("stage");
  const status = find("status");
  const entry = find("page");
  const { identifier, tail, title } = stage.dataset; // tail: a signature, if any
  const pages = Number(stage.dataset.pages);
  let page = Number(stage.dataset.page);

  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  stage.replaceChildren();
  // OpenSeadragon adds a style unless it finds one marked so; the policy of this page forbids it, viewer.css has the rule
  const marked = document.createElementNS("urn:x-marked", "style");
  marked.setAttribute("data-openseadragon-mobile-css", "true");
  document.head.append(marked);
  const viewer = OpenSeadragon({
    element: stage,
    drawer: "canvas",
    showNavigationControl: false,
    showNavigator: matchMedia("(min-width: 40rem)").matches,
    navigatorPosition: "TOP_RIGHT",
    navigatorSizeRatio: 0.16,
    navigatorBackground: "#1b1a18",
    navigatorBorderColor: "#35322d",
    navigatorDisplayRegionColor: "#f0a577",
    gestureSettingsTouch: { pinchRotate: false },
    animationTime: still ? 0 : 0.7,
    maxZoomPixelRatio: 4,
    visibilityRatio: 0.4,
    minZoomImageRatio: 0.8,
  });
  viewer.canvas.setAttribute("role", "application");
  viewer.canvas.setAttribute("aria-roledescription", "zoomable image");
  viewer.canvas.setAttribute("aria-describedby", "keys");

  const named = (number) => identifier + (number > 1 ? `;page=${number}` : "") + tail;
  const say = (text) => { status.textContent = text; };

  async function information(number) {
    const service = new URL(`../iiif/3/${named(number)}`, location.href).href;
    const answer = await fetch(`${service}/info.json`, { headers: { Accept: "application/json" } });
    const document = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(document.detail || `the server answered ${answer.status}`);
    return { ...document, id: service }; // tiles come from where this page came from, whatever the proxy says
  }

  let turning = 0;
  async function show(number) {
    const turn = ++turning;
    try {
      const source = await information(number);
      if (turn !== turning) return;
      viewer.open(source);
      find("pixels").textContent = `${source.width} × ${source.height}`;
    } catch (error) {
      if (turn !== turning) return;
      viewer.close();
      say(`The image can’t be shown: ${error.message}`);
    }
    page = number;
    viewer.canvas.setAttribute("aria-label", pages > 1 ? `${title}, page ${page} of ${pages}` : title);
    find("info").href = `../iiif/3/${named(page)}/info.json`;
    if (pages > 1) {
      entry.value = page;
      find("previous").disabled = page === 1;
      find("next").disabled = page === pages;
      document.title = `${title}, page ${page} of ${pages}`;
      history.replaceState(null, "", `./${named(page)}`);
    }
  }

  const turn = (number) => {
    if (pages > 1 && number >= 1 && number <= pages && number !== page) show(number);
  };
  const seen = (change) => () => {
    if (viewer.isOpen()) change(viewer.viewport).applyConstraints();
  };
  const fill = () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen().catch(() => say("The browser doesn’t allow full screen here."));
  };
  const actions = {
    "zoom-in": seen((viewport) => viewport.zoomBy(1.6)),
    "zoom-out": seen((viewport) => viewport.zoomBy(1 / 1.6)),
    whole: seen((viewport) => viewport.fitBounds(viewport.getHomeBounds())),
    turn: seen((viewport) => viewport.setRotation(viewport.getRotation() + 90)),
    full: fill,
    previous: () => turn(page - 1),
    next: () => turn(page + 1),
  };
  for (const [id, action] of Object.entries(actions)) find(id)?.addEventListener("click", action);

  entry?.addEventListener("change", () => {
    const wanted = Math.min(Math.max(Math.round(Number(entry.value)) || 1, 1), pages);
    entry.value = wanted;
    turn(wanted);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Tab") stage.classList.add("ringed"); // the focus that the page began with needs no ring
    if (event.ctrlKey || event.metaKey || event.altKey || event.target === entry) return;
    const action = actions[KEYS[event.key]];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation(); // OpenSeadragon goes by where a key is on an American keyboard, and mirrors the image at f
    action();
  }, true);
  document.addEventListener("fullscreenchange", () => {
    const full = Boolean(document.fullscreenElement);
    document.querySelector("header").hidden = full;
    find("full").setAttribute("aria-pressed", full);
  });

  viewer.addHandler("open", () => { say(""); });
  viewer.addHandler("open-failed", (event) => say(`The image can’t be shown: ${event.message}`));
  viewer.addHandler("tile-load-failed", () => say("A part of the image could not be loaded."));
  find("full").hidden = !document.fullscreenEnabled;
  find("tools").hidden = false;
  if (pages > 1) find("pages").hidden = false;
  viewer.canvas.focus({ preventScroll: true });
  show(page);
})();
