/** Loads the fonts of theme.css without delaying the first paint. */

/** Set in local storage after this browser has loaded the fonts and cached them. */
const key = 'muster.fonts';

/** Delay in milliseconds after the page has loaded, so that the fonts do not compete with the first data. */
const firstLoadDelayMs = 1_000;

const families = ['"Inter Variable"', '"JetBrains Mono Variable"', '"JetBrains Mono Terminal"'];
const weights = [400, 600];

/** Loads the fonts. If this fails, the page keeps the operating system's fonts. */
async function loadFonts(): Promise<void> {
  const loaded = await Promise.all(
    families.flatMap((family) => weights.map((weight) => document.fonts.load(`${weight} 1em ${family}`))),
  );
  if (loaded.every(({ length }) => length > 0)) showFonts();
}

function showFonts(): void {
  document.documentElement.dataset.fonts = '';
  try {
    window.localStorage.setItem(key, 'loaded');
  } catch {
    // Local storage is unavailable, so the next page will load the fonts late again.
  }
}

function areCached(): boolean {
  try {
    return window.localStorage.getItem(key) !== null;
  } catch {
    return false;
  }
}

/**
 * Uses the fonts immediately if this browser has already loaded them, so that text does not change its font after the
 * first paint. Otherwise loads them after the page. Call this function before the first render.
 */
export function startFonts(): void {
  // Errors are ignored, because the page is complete without these fonts.
  const load = () => void loadFonts().catch(() => {});
  if (areCached()) {
    document.documentElement.dataset.fonts = '';
    load();
  } else window.addEventListener('load', () => window.setTimeout(load, firstLoadDelayMs));
}
