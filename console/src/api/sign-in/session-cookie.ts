const probe = '__Host-muster-probe';

/**
 * Reports whether the browser stores cookies with the attributes of a console session cookie: over TLS, and in some
 * browsers also over plain HTTP on a loopback address, unless the user blocks cookies.
 */
export function acceptsCookies(): boolean {
  const set = (value: string, life: number) => {
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not available over plain HTTP everywhere.
    document.cookie = `${probe}=${value}; Path=/; Max-Age=${life}; Secure; SameSite=Strict`;
  };
  set('1', 60);
  const isStored = document.cookie.includes(`${probe}=1`);
  set('', 0);
  return isStored;
}
