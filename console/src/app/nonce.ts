/**
 * Sets the nonce of this response on every style element when it is created. The content security policy allows only such
 * style elements, and libraries that create some (xterm, the scroll locks of dialogs) do not know the nonce. Scripts never
 * get it.
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

// Runs on import, in the first chunk (vite.config.ts), because some libraries create style elements when they are loaded.
markStyleElements(document);
