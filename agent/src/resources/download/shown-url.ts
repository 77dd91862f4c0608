import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';

/** Returns a URL for messages. Omits the user name, the password, and the query, which may contain credentials. */
function shownUrl(text: string): string {
  const url = URL.parse(text);
  return url === null ? 'the URL' : `${url.protocol}//${url.host}${url.pathname}`;
}

/**
 * Adds the URL to a download failure, unless the field may contain a secret.
 * @returns `error` itself if it is not a HostFailure
 */
export function notDownloaded(
  {
    body,
    sensitive_fields: sensitive,
  }: Pick<ResolvedResource<'download'>, 'sensitive_fields'> & {
    body: { url?: string | null; sha256_url?: string | null };
  },
  field: 'url' | 'sha256_url',
  error: unknown,
): unknown {
  if (!(error instanceof HostFailure)) return error;
  const from = sensitive.includes(field) ? `\`${field}\`` : shownUrl(body[field] ?? '');
  return new HostFailure(`cannot download from ${from}: ${error.message}`);
}
