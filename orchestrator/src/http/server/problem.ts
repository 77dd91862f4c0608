import { type ErrorCode, errorKinds, MusterError } from '@muster/protocol';
import type { Problem } from '@muster/protocol/client';

/** A MusterError whose answer needs a header besides. */
export class RefusedRequest extends MusterError {
  readonly headers: Readonly<Record<string, string>>;
  constructor(code: ErrorCode, detail: string | undefined, headers: Readonly<Record<string, string>>) {
    super(code, detail);
    this.headers = headers;
  }
}

/** What the framework's own refusals are called in our table. */
const frameworkCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_BAD_URL: 'malformed_request',
  FST_ERR_NOT_FOUND: 'route_not_found',
};

/**
 * Turns whatever was thrown into an error of our table. What is not one, and not the framework's refusal of a request, is
 * a bug: `internal`, with nothing of it shown.
 */
export function musterErrorOf(thrown: unknown): MusterError {
  if (thrown instanceof MusterError) return thrown;
  const { code, statusCode } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown };
  const known = typeof code === 'string' ? frameworkCodes[code] : undefined;
  if (known !== undefined) return new MusterError(known);
  // The client hung up in the middle of its body, or what arrived broke off: nobody may read this, but it is no bug.
  if (statusCode === 400) return new MusterError('malformed_request', 'The request broke off or is malformed.');
  return new MusterError('internal');
}

/** The problem details (RFC 9457) of an error. `instance` is the request's id, which every line of its log carries. */
export function problemOf(error: MusterError, requestId: string): Problem {
  const kind = errorKinds[error.code];
  return {
    type: `urn:muster:error:${error.code}`,
    title: kind.title,
    status: kind.status,
    // Where nothing more is known than the title says, what to do about it is the better detail.
    detail: error.message === kind.title ? kind.remedy : error.message,
    instance: requestId,
    code: error.code,
    ...(error.errors && error.errors.length > 0 ? { errors: [...error.errors] } : {}),
  };
}

/** The headers that an answer of this status must carry, when the error brings none of its own. */
export function headersOf(error: MusterError): Readonly<Record<string, string>> {
  if (error instanceof RefusedRequest) return error.headers;
  const { status } = error.kind;
  if (status === 401) return { 'www-authenticate': 'Bearer realm="muster"' };
  if (status === 429) return { 'retry-after': '1' };
  if (error.code === 'draining') return { 'retry-after': '5', connection: 'close' };
  return {};
}
