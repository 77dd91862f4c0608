/**
 * Sets this response's nonce on every style element when it is created. The Content-Security-Policy allows no other
 * style elements, and libraries that create them (xterm, the scroll lock of dialogs) do not have the nonce. Scripts
 * receive no nonce.
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

// Runs on import, in the first chunk (vite.config.ts), because some libraries create style elements while they load.
markStyleElements(document);
