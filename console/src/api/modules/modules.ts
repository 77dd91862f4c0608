import { ApiError } from '@muster/protocol/client';
import {
  getModule,
  listModuleRevisions,
  listModules,
  orderModules,
  removeModule as removeModuleRoute,
  uploadModule as uploadModuleRoute,
  validateModule,
} from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from '../client.ts';
import { queryClient, routeQuery } from '../query-client.ts';
import { keys } from '../query-keys.ts';

export const modulesQuery = routeQuery(keys.modules, listModules, { all: true });

export const moduleQuery = (name: string, revision?: number) =>
  queryOptions({
    queryKey: keys.module(name, revision),
    queryFn: ({ signal }) =>
      call(getModule, {
        params: { name },
        query: revision === undefined ? {} : { revision: String(revision) },
        signal,
      }),
  });

/** The revisions of a module, newest first. */
export const revisionsQuery = (name: string) =>
  queryOptions({
    queryKey: keys.revisions(name),
    queryFn: ({ signal }) =>
      call(listModuleRevisions, { params: { name }, query: { limit: '500' }, all: true, signal }),
  });

/**
 * The resources' execution order.
 * @param agent the agent for which to resolve expressions; null keeps the expressions as written
 */
export const orderQuery = (modules: readonly string[], agent: string | null) =>
  queryOptions({
    queryKey: [...keys.modules, 'order', modules, agent],
    queryFn: ({ signal }) =>
      call(orderModules, { body: { modules: [...modules], ...(agent === null ? {} : { agent }) }, signal }),
  });

/** @param revision the revision to which the text's files belong; undefined for the newest revision */
const withFiles = (revision: number | undefined) => (revision === undefined ? {} : { files_of: revision });

/** Validates a module without storing it. */
export const validate = (content: string, filesOf: number | undefined, signal: AbortSignal) =>
  call(validateModule, { body: { content, ...withFiles(filesOf) }, signal });

/** Fetches the stored module without using the cache. */
export const freshModule = (name: string) => queryClient.fetchQuery({ ...moduleQuery(name), staleTime: 0 });

export const isModuleNotFound = (error: unknown): boolean => error instanceof ApiError && error.problem.status === 404;

/**
 * Stores a new revision.
 * @param filesOf the revision from which to keep the files; undefined for the newest
 * @returns the stored module
 */
export async function uploadModule(name: string, content: string, filesOf?: number) {
  await call(uploadModuleRoute, { body: { name, content, ...withFiles(filesOf) } });
  void queryClient.invalidateQueries({ queryKey: keys.modules });
  void queryClient.invalidateQueries({ queryKey: keys.revisions(name) });
  return await freshModule(name);
}

export async function removeModule(name: string): Promise<void> {
  await call(removeModuleRoute, { params: { name } });
  queryClient.removeQueries({ queryKey: keys.module(name) });
  await queryClient.invalidateQueries({ queryKey: keys.modules });
}
