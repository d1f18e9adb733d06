-- Orders: nothing looks for orders by their date alone.

DROP INDEX orders_created;
