/**
 * The page's policy lets in only style elements that carry the nonce of this answer. Libraries that make some (xterm,
 * scroll locks of dialogs) do not know it; so every style element gets it here when it is made. Scripts never do.
 */
function markStyleElements(document: Document): void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.content ?? '';
  const create = document.createElement.bind(document) as typeof document.createElement;
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const element = create(name, options);
    if (name.toLowerCase() === 'style') element.nonce = nonce;
    return element;
  }) as typeof document.createElement;
}

// On import, and in the chunk that runs before all others (vite.config.ts): some make theirs when they are loaded.
markStyleElements(document);
