import { type ErrorCode, errorKinds, MusterError } from '@muster/protocol';
import type { Problem } from '@muster/protocol/client';
import { StalePlan } from '../../domain/operations/stale-plan.ts';

/**
 * A MusterError whose response has additional headers. An error whose response has an additional field follows the same
 * pattern: a subclass carries the value from where it is thrown to `problemOf`. docs/checklists/error-field.md lists
 * the steps.
 */
export class RefusedRequest extends MusterError {
  readonly headers: Readonly<Record<string, string>>;
  constructor(code: ErrorCode, detail: string | undefined, headers: Readonly<Record<string, string>>) {
    super(code, detail);
    this.headers = headers;
  }
}

/** A bug prevented the answer of a request that had already changed something. */
export class FailedAfterWrite extends MusterError {
  constructor(bug: unknown) {
    super('outcome_unknown', 'The request may have been served only in part: an internal error occurred.');
    this.cause = bug;
  }
}

/** Maps the web framework's error codes to Muster's error codes. */
const frameworkCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'malformed_request',
  FST_ERR_BAD_URL: 'malformed_request',
  FST_ERR_NOT_FOUND: 'route_not_found',
};

/**
 * Converts a thrown value to a MusterError. Any value other than a MusterError or a framework error is a bug, and
 * becomes `internal` without details.
 */
export function musterErrorOf(thrown: unknown): MusterError {
  if (thrown instanceof MusterError) return thrown;
  const { code, statusCode } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown };
  const known = typeof code === 'string' ? frameworkCodes[code] : undefined;
  if (known !== undefined) return new MusterError(known);
  // The client disconnected while sending its body, or sent an incomplete body. Neither is a bug.
  if (statusCode === 400) return new MusterError('malformed_request', 'The request is incomplete or malformed.');
  return new MusterError('internal');
}

/** Returns the problem details (RFC 9457) of an error. `instance` contains the request ID. */
export function problemOf(error: MusterError, requestId: string): Problem {
  const kind = errorKinds[error.code];
  return {
    type: `urn:muster:error:${error.code}`,
    title: kind.title,
    status: kind.status,
    // Uses the remedy in place of the default message, which only repeats the title.
    detail: error.message === kind.title ? kind.remedy : error.message,
    instance: requestId,
    code: error.code,
    ...(error.errors && error.errors.length > 0 ? { errors: [...error.errors] } : {}),
    ...(error instanceof StalePlan && error.plannedAt !== null ? { planned_at: error.plannedAt } : {}),
  };
}

/** Returns the headers of the error, or the headers that its status requires. */
export function headersOf(error: MusterError): Readonly<Record<string, string>> {
  if (error instanceof RefusedRequest) return error.headers;
  const { status } = error.kind;
  if (status === 401) return { 'www-authenticate': 'Bearer realm="muster"' };
  if (status === 429) return { 'retry-after': '1' };
  if (error.code === 'draining') return { 'retry-after': '5', connection: 'close' };
  return {};
}
