import { apiPrefix } from '@muster/protocol/http';
import type { FastifyRequest } from 'fastify';

/** Returns the path without the query, which may contain a terminal ticket. */
export const pathOf = ({ url }: FastifyRequest): string => {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
};

/** Reports whether a request is for the API. Accepts absolute URLs and escaped letters, as the router does. */
export const isApi = (request: FastifyRequest): boolean => {
  const path = pathOf(request);
  if (path === apiPrefix || path.startsWith(`${apiPrefix}/`)) return true;
  return `${unescaped(path.replace(/^https?:\/\/[^/]*/i, ''))}/`.startsWith(`${apiPrefix}/`);
};

/** Decodes only the percent escapes of ASCII characters. */
const unescaped = (path: string): string =>
  path.replaceAll(/%[0-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
