import { apiPrefix } from '@muster/protocol/http';
import type { FastifyRequest } from 'fastify';

/** The path without the query, which may contain a ticket. */
export const pathOf = ({ url }: FastifyRequest): string => {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
};

/** Whether a request is for the API, in any spelling of the path: the router also accepts full URLs and escaped letters. */
export const isApi = (request: FastifyRequest): boolean => {
  const path = pathOf(request);
  if (path === apiPrefix || path.startsWith(`${apiPrefix}/`)) return true;
  return `${unescaped(path.replace(/^https?:\/\/[^/]*/i, ''))}/`.startsWith(`${apiPrefix}/`);
};

/** Decodes percent escapes of ASCII characters, and leaves other escapes unchanged. */
const unescaped = (path: string): string =>
  path.replaceAll(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
