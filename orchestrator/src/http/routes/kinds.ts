import { getKind, listKinds } from '../../domain/kinds/kinds.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export const kindHandlers = {
  listKinds: async ({ query }) => paged(await listKinds(query), query),
  getKind: ({ params }) => getKind(params.name),
} satisfies Partial<Handlers>;
