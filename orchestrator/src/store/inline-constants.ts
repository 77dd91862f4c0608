import {
  type KyselyPlugin,
  OperationNodeTransformer,
  type PrimitiveValueListNode,
  type ValueListNode,
  ValueNode,
} from 'kysely';
import { Placeholder } from './params.ts';

/**
 * Writes a query's constants into its SQL, because the query planner can use a partial index only if it sees the
 * condition's values. All constants are from the source code, so they cannot inject SQL. Booleans become 1 and 0, as
 * both databases store them.
 */
class ConstantsTransformer extends OperationNodeTransformer {
  protected override transformValue(node: ValueNode): ValueNode {
    const { value } = node;
    // `sql.lit` creates immediate values, which are already part of the SQL.
    if (node.immediate || value instanceof Placeholder || value instanceof Uint8Array) return node;
    return ValueNode.createImmediate(typeof value === 'boolean' ? Number(value) : value);
  }

  protected override transformPrimitiveValueList(node: PrimitiveValueListNode): PrimitiveValueListNode {
    const list: ValueListNode = {
      kind: 'ValueListNode',
      values: node.values.map((value) => this.transformValue(ValueNode.create(value))),
    };
    // The compiler accepts both kinds of list nodes here.
    return list as unknown as PrimitiveValueListNode;
  }
}

const transformer = new ConstantsTransformer();

export const inlineConstants: KyselyPlugin = {
  transformQuery: ({ node }) => transformer.transformNode(node),
  transformResult: async ({ result }) => result,
};
