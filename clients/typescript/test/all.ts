// One process, one test after the other: some of them watch a balance or the events of the whole company.
import "./decimal.test.js";
import "./orders.test.js";
import "./failures.test.js";
import "./events.test.js";
