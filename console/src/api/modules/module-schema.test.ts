import { moduleSchemaId } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { moduleSchemaPath } from './module-schema.ts';

test('fetches the schema from the path that serves it', () => expect(moduleSchemaPath).toBe(moduleSchemaId));
